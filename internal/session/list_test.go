package session_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/sessiontest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// say starts a turn in a session of the caller and leaves it queued.
func (w *world) say(t testing.TB, s *sessiontest.Replica, caller, command string) (id, turn uuid.UUID) {
	t.Helper()
	err := s.Open(t.Context(), session.Ref{Workspace: w.Workspace.ID, CallerID: caller}, func(tx *session.Tx) (err error) {
		id = tx.SessionID()
		turn = uuid.Must(uuid.NewV7())
		_, _, err = tx.Begin(t.Context(), session.NewTurn{ID: turn, Message: event.Message{Content: command}, MaxResponseSeconds: 600,
			MaxTurns: 50})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id, turn
}

func invalidCursor(err error) bool {
	f := fault.From(err)
	return f != nil && f.Code == fault.InvalidCursor
}

func TestSessionPagesHoldEverySessionOnce(t *testing.T) {
	t.Parallel()
	slow.Test(t, "writes many rows")
	w := newWorld(t)
	s := w.Replica(t)
	var want []uuid.UUID
	for i := range 7 {
		id, _ := w.say(t, s, fmt.Sprint("caller-", i), "hello")
		want = append(want, id)
	}
	// Equal times: only the id distinguishes these sessions.
	if _, err := w.Pool.Exec(t.Context(), `UPDATE sessions SET updated_at = '2026-01-01' WHERE caller_id < 'caller-4'`); err != nil {
		t.Fatal(err)
	}
	for _, oldest := range []bool{false, true} {
		for limit := 1; limit <= 8; limit++ {
			q := session.SummaryQuery{Limit: limit, OldestFirst: oldest}
			var got []uuid.UUID
			for {
				page, err := s.Summaries(t.Context(), w.Workspace.ID, q)
				if err != nil {
					t.Fatal(err)
				}
				for _, sum := range page.Data {
					got = append(got, sum.SessionID)
				}
				if page.HasMore != (page.NextCursor != nil) || page.HasMore && len(page.Data) != limit {
					t.Fatalf("limit %d: %d items, more %v, cursor %v", limit, len(page.Data), page.HasMore, page.NextCursor)
				}
				if !page.HasMore {
					break
				}
				q.Cursor = *page.NextCursor
			}
			if !oldest {
				slices.Reverse(got)
			}
			slices.SortFunc(want[:4], func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
			if !slices.Equal(got, want) {
				t.Errorf("oldest first %v, limit %d: %v, want %v", oldest, limit, got, want)
			}
		}
	}
}

func TestSessionFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	done, turn := w.say(t, s, "anna", "first")
	sessiontest.End(t, s, sessiontest.Claim(t, s, done, turn))
	thinking, _ := w.say(t, s, "", "second")
	var fresh uuid.UUID
	err := s.Open(t.Context(), session.Ref{Workspace: w.Workspace.ID, CallerID: "bob"}, func(tx *session.Tx) error {
		fresh = tx.SessionID()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pool.Exec(t.Context(), `UPDATE sessions SET created_at = '2020-01-01' WHERE id = $1`, done); err != nil {
		t.Fatal(err)
	}
	since := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		q    session.SummaryQuery
		want []uuid.UUID
	}{
		"all":                 {session.SummaryQuery{}, []uuid.UUID{done, thinking, fresh}},
		"completed":           {session.SummaryQuery{Status: session.Done}, []uuid.UUID{done}},
		"thinking":            {session.SummaryQuery{Status: session.Thinking}, []uuid.UUID{thinking}},
		"not started":         {session.SummaryQuery{Status: session.NotStarted}, []uuid.UUID{fresh}},
		"a caller":            {session.SummaryQuery{CallerID: new("anna")}, []uuid.UUID{done}},
		"a caller, ascending": {session.SummaryQuery{CallerID: new("anna"), OldestFirst: true}, []uuid.UUID{done}},
		"nobody":              {session.SummaryQuery{CallerID: new("")}, nil},
		"created after":       {session.SummaryQuery{CreatedAfter: &since}, []uuid.UUID{thinking, fresh}},
		"both":                {session.SummaryQuery{CreatedAfter: &since, Status: session.Done}, nil},
	} {
		c.q.Limit = 10
		page, err := s.Summaries(t.Context(), w.Workspace.ID, c.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []uuid.UUID
		for _, sum := range page.Data {
			got = append(got, sum.SessionID)
		}
		for _, list := range [][]uuid.UUID{got, c.want} {
			slices.SortFunc(list, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if page, err := s.Summaries(t.Context(), uuid.New(), session.SummaryQuery{Limit: 10}); err != nil || len(page.Data) != 0 {
		t.Errorf("another workspace sees %+v, %v", page, err)
	}
}

func TestListsShowWhatWasSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	id, turn := w.say(t, s, "anna", "What is new?")
	lease := sessiontest.Claim(t, s, id, turn)
	cost := 0.25
	err := s.Writer(lease).Append(t.Context(),
		event.ToolUse{Tool: "wiki_read", Summary: "news", ToolUseID: "t1"},
		event.ToolResult{Tool: "wiki_read", OK: true, Output: "…", ToolUseID: "t1"},
		event.Reference{Path: "wiki/news.md.md", Source: "grep"},
		event.Reference{Path: "news.md", Source: "wiki_read"},
		event.Reference{Path: "wiki/news.md.md", Source: "read"}, // the same document
		event.Text{Text: "Nothing "}, event.Text{Text: "much."},
		event.Reply{Text: "Nothing much.", Usage: event.Usage{InputTokens: 10, OutputTokens: 3, CostUSD: &cost, Model: "m"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.End(t, s, lease)

	page, err := s.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Limit: 1})
	if err != nil || len(page.Data) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	shape(t, page.Data[0], `{"session_id":"`+id.String()+
		`","caller_id":"anna","session_key":"api:anna","title":"What is new?","status":"completed",
		"user":null,"metadata":{},"error":null,"pending":null,"turn_id":"`+turn.String()+`","last_seq":0,"message_count":2,
		"usage":{"input_tokens":10,"output_tokens":3,"cost_usd":0.25},"created_at":"","updated_at":""}`, "last_seq", "created_at", "updated_at")

	messages, err := s.Messages(t.Context(), w.Workspace.ID, id, session.MessageQuery{Limit: 10})
	if err != nil || len(messages.Data) != 2 || messages.HasMore || messages.NextCursor != nil {
		t.Fatalf("%+v, %v", messages, err)
	}
	vary := []string{"message_id", "first_seq", "last_seq", "created_at"}
	shape(t, messages.Data[0], `{"message_id":"","turn_id":"`+turn.String()+
		`","role":"user","content":"What is new?","output":null,"status":"completed",
		"agent":"default","agent_version":1,"tool_calls":[],"attachments":[],"error":null,"first_seq":0,"last_seq":0,"created_at":""}`, vary...)
	shape(t, messages.Data[1], `{"message_id":"","turn_id":"`+turn.String()+
		`","role":"assistant","content":"Nothing much.","output":"Nothing much.","status":"completed",
		"tool_calls":[{"tool":"wiki_read","summary":"news","ok":true,"tool_use_id":"t1","truncated":false}],"attachments":[],
		"agent":"default","agent_version":1,"references":[{"path":"news.md","source":"wiki_read"}],"usage":{"input_tokens":10,"output_tokens":3,"cost_usd":0.25,"model":"m"},
		"error":null,"first_seq":0,"last_seq":0,"created_at":""}`, vary...)
	if _, answer, err := s.Answer(t.Context(), w.Workspace.ID, turn); err != nil || answer.MessageID != messages.Data[1].MessageID {
		t.Errorf("answer %+v, %v", answer, err)
	}
	for _, of := range [][2]uuid.UUID{{w.Workspace.ID, uuid.New()}, {uuid.New(), turn}} {
		if _, answer, err := s.Answer(t.Context(), of[0], of[1]); err == nil {
			t.Errorf("the answer of an unknown turn: %+v", answer)
		}
	}
}

// shape compares JSON and ignores the members that differ between runs.
func shape(t *testing.T, got any, want string, vary ...string) {
	t.Helper()
	var g, w map[string]any
	data, err := json.Marshal(got)
	if err := errors.Join(err, json.Unmarshal(data, &g), json.Unmarshal([]byte(want), &w)); err != nil {
		t.Fatal(err)
	}
	for _, name := range vary {
		if g[name] == nil || g[name] == "" || g[name] == 0.0 {
			t.Errorf("%s is %v", name, g[name])
		}
		g[name], w[name] = nil, nil
	}
	if fmt.Sprint(g) != fmt.Sprint(w) {
		t.Errorf("got\n%v, want\n%v", g, w)
	}
}

func TestMessagePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	var id uuid.UUID
	for i := range 3 {
		var turn uuid.UUID
		id, turn = w.say(t, s, "anna", fmt.Sprint("message ", i))
		sessiontest.End(t, s, sessiontest.Claim(t, s, id, turn))
	}
	for _, newest := range []bool{false, true} {
		q := session.MessageQuery{Limit: 4, NewestFirst: newest}
		first, err := s.Messages(t.Context(), w.Workspace.ID, id, q)
		if err != nil || len(first.Data) != 4 || !first.HasMore {
			t.Fatalf("%+v, %v", first, err)
		}
		q.Cursor = *first.NextCursor
		second, err := s.Messages(t.Context(), w.Workspace.ID, id, q)
		if err != nil || len(second.Data) != 2 || second.HasMore {
			t.Fatalf("%+v, %v", second, err)
		}
		all := append(first.Data, second.Data...)
		if newest {
			slices.Reverse(all)
		}
		for i, m := range all {
			if role := []string{"user", "assistant"}[i%2]; m.Role != role || role == "user" && *m.Content != fmt.Sprint("message ", i/2) {
				t.Errorf("message %d: %+v", i, m)
			}
		}
	}
	_, err := s.Messages(t.Context(), uuid.New(), id, session.MessageQuery{Limit: 1})
	if f := fault.From(err); f == nil || f.Code != fault.SessionNotFound {
		t.Errorf("another workspace: %v", err)
	}
}

func TestCursorsAreOfOneListOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	other, err := workspace.New(w.Pool).Create(t.Context(), "other", "", "")
	if err != nil {
		t.Fatal(err)
	}
	id, _ := w.say(t, s, "a", "x")
	again, _ := w.say(t, s, "b", "x")
	sessions, err := s.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := s.Messages(t.Context(), w.Workspace.ID, id, session.MessageQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	good, goodMessages := *sessions.NextCursor, *messages.NextCursor

	bad := []string{" ", "x", good[1:], good + "A", good + "=", strings.ToUpper(good), goodMessages, strings.Repeat("A", 10<<10),
		strings.Repeat("A", len(good)), "\x00", "\xff", "é"}
	for i := range good {
		for _, c := range "A0_-" {
			if forged := good[:i] + string(c) + good[i+1:]; forged != good {
				bad = append(bad, forged)
			}
		}
	}
	for _, at := range []int64{-1, 1 << 62, -1 << 63} {
		bad = append(bad, forge(t, good, w.Workspace.ID, at))
	}
	for _, cursor := range bad {
		if _, err := s.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Limit: 1, Cursor: cursor}); !invalidCursor(err) {
			t.Errorf("%.60q: %v", cursor, err)
		}
	}
	if _, err := s.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Limit: 1, Cursor: good,
		OldestFirst: true}); !invalidCursor(err) {
		t.Errorf("the other order: %v", err)
	}
	if _, err := s.Summaries(t.Context(), other.ID, session.SummaryQuery{Limit: 1, Cursor: good}); !invalidCursor(err) {
		t.Errorf("another workspace: %v", err)
	}
	for name, c := range map[string]struct {
		id     uuid.UUID
		cursor string
	}{"the list of sessions'": {id, good}, "another session's": {again, goodMessages}, "nonsense": {id, "nonsense"}} {
		if _, err := s.Messages(t.Context(), w.Workspace.ID, c.id, session.MessageQuery{Limit: 1, Cursor: c.cursor}); !invalidCursor(err) {
			t.Errorf("messages by %s cursor: %v", name, err)
		}
	}
}

// forge returns a well-formed cursor with another time.
func forge(t *testing.T, cursor string, workspace uuid.UUID, micro int64) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(b[2:], uint64(micro))
	sum := crc32.Update(crc32.ChecksumIEEE(b[:26]), crc32.IEEETable, workspace[:])
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b[:26], sum))
}
