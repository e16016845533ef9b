package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a database with one key.
type world struct {
	dsn  string
	pool *pgxpool.Pool
	ws   uuid.UUID
	key  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dsn: dbtest.DSN(t)}
	w.pool = dbtest.Pool(t, w.dsn)
	ws, err := workspace.New(w.pool).Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.ws = ws.ID
	w.key = w.issue(t)
	return w
}

func (w *world) issue(t *testing.T) string {
	t.Helper()
	key, _, err := apikey.New(w.pool, nil).Create(t.Context(), apikey.Grant{Workspace: w.ws, Name: "test", Scopes: apikey.Scopes{apikey.Chat}})
	if err != nil {
		t.Fatal(err)
	}
	return key.ID
}

// store returns a store without any remembered counts.
func (w *world) store() *ratelimit.Store { return ratelimit.New(w.pool, ratelimit.Options{}) }

// later moves time forward on the database.
func (w *world) later(t *testing.T, by string) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), `UPDATE rate_limits SET full_at = full_at - $1::text::interval`, by); err != nil {
		t.Fatal(err)
	}
}

func is(err error, code fault.Code) bool {
	f := fault.From(err)
	return f != nil && f.Code == code && f.Detail.RetryAfter > 0
}

func TestAQuotaCanBeUsedAtOnceAndComesBackEvenly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	const size = 4 // one each 15 s: the test is faster than that
	for left := size - 1; left >= 0; left-- {
		q, err := s.Take(t.Context(), w.key, ratelimit.Messages, size)
		if err != nil || q.Size != size || q.Left != left || q.Next <= 0 || q.Next > 15*time.Second {
			t.Fatalf("%+v, %v; want %d left", q, err, left)
		}
	}
	q, err := s.Take(t.Context(), w.key, ratelimit.Messages, size)
	if !is(err, fault.RateLimited) || q.Left != 0 || q.Next <= 0 || q.Next > 15*time.Second || fault.From(err).Detail.RetryAfter != q.Next {
		t.Errorf("one more: %+v, %v", q, err)
	}
	if _, err := s.Take(t.Context(), w.key, ratelimit.Calls, size); err != nil {
		t.Errorf("another class: %v", err)
	}
	if _, err := s.Take(t.Context(), w.issue(t), ratelimit.Messages, size); err != nil {
		t.Errorf("another key: %v", err)
	}
	w.later(t, "15 s")
	s = w.store()
	if q, err := s.Take(t.Context(), w.key, ratelimit.Messages, size); err != nil || q.Left != 0 {
		t.Errorf("after 15 s: %+v, %v", q, err)
	}
	if _, err := s.Take(t.Context(), w.key, ratelimit.Messages, size); !is(err, fault.RateLimited) {
		t.Errorf("and again: %v", err)
	}
	w.later(t, "10 min")
	if q, err := w.store().Take(t.Context(), w.key, ratelimit.Messages, size); err != nil || q.Left != size-1 {
		t.Errorf("after a long time: %+v, %v; want one quota", q, err)
	}
}

func TestAWholeQuotaIsGiven(t *testing.T) {
	t.Parallel()
	slow.Test(t, "makes a thousand requests")
	w := newWorld(t)
	for _, size := range []int{1, 7, 59, 61, 997} {
		s, key := w.store(), w.issue(t)
		for i := range size {
			if _, err := s.Take(t.Context(), key, ratelimit.Calls, size); err != nil {
				t.Fatalf("request %d of %d: %v", i+1, size, err)
			}
		}
	}
}

func TestReplicasShareAQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size = 10
	began := time.Now()
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		s := w.store()
		for range 8 {
			wg.Go(func() {
				_, err := s.Take(t.Context(), w.key, ratelimit.Messages, size)
				if err == nil {
					allowed.Add(1)
				} else if !is(err, fault.RateLimited) {
					t.Error(err)
				}
			})
		}
	}
	wait.Until(t, "all goroutines", wg.Wait)
	came := int64(time.Since(began) / (time.Minute / size)) // refilled while the test ran
	if n := allowed.Load(); n < size || n > size+came {
		t.Errorf("%d requests were allowed", n)
	}
}

// A key over its limit costs the database nothing, and is rejected as long as it stays over. A
// failure to count is another error, and is returned soon.
func TestRefusalsNeedNoDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	if _, err := s.Take(t.Context(), w.key, ratelimit.Messages, 1); err != nil || s.Empty(w.key, ratelimit.Messages) {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), w.key, ratelimit.Messages, 1); !is(err, fault.RateLimited) || !s.Empty(w.key, ratelimit.Messages) {
		t.Fatal(err)
	}
	w.pool.Close()
	for range 100 {
		if _, err := s.Take(t.Context(), w.key, ratelimit.Messages, 1); !is(err, fault.RateLimited) {
			t.Fatal(err)
		}
	}
	if _, err := s.Take(t.Context(), w.key, ratelimit.Calls, 1); err == nil || fault.From(err) != nil {
		t.Errorf("a request of another class: %v", err)
	}
}

// While the database hangs, a request waits only briefly for its count.
func TestACountThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.store()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE rate_limits`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.Take(t.Context(), w.key, ratelimit.Messages, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
}
