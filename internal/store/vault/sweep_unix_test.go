//go:build unix

package vault_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/canary"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestASecretIsNowhereInPlainText lets a server that logs everything see all that the vault does,
// errors included, and then searches its log. At the end it stores and logs the same value in plain
// text, to prove that the search finds it.
func TestASecretIsNowhereInPlainText(t *testing.T) {
	t.Parallel()
	slow.Test(t, "dumps a database")
	server := dbtest.NewServer(t, canary.Settings()...)
	dsn := server.DSN()
	pool := dbtest.Pool(t, dsn)
	value := canary.New()
	plain := vault.NewValue([]byte(value))
	var logged bytes.Buffer
	log := slog.New(slog.NewMultiHandler(slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)))
	note := func(what string, err error) {
		log.Info(what, "err", err, "value", plain, "more", fmt.Sprintf("%+v", struct{ v vault.Value }{plain}))
	}

	s := vault.New(pool, keyring(t))
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := tenant(t, pool, "one")
	register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"a.example.com"}})
	provide := func(v vault.Value, name string) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return s.Provide(t.Context(), tx, w, name, v, me) })
	}
	if err := provide(plain, "TOKEN"); err != nil || value != valueOf(t, s, w, "TOKEN") {
		t.Fatalf("provided %v", err)
	}
	register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"b.example.com"}, Value: plain})
	exec(t, pool, `CREATE TABLE prompts (prompt sealed)`)
	prompt, err := s.Keyring().Seal([]byte(`{"input":`+value+`}`), "prompt", "1")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `INSERT INTO prompts VALUES ($1)`, prompt)

	// Now the failures, and how they are reported.
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	unprepared := setSecret(t, vault.New(pool, keyring(t)), pool, w, "TOKEN", plain)
	_, bound := pool.Exec(t.Context(), `INSERT INTO prompts VALUES ($1)`, plain)
	_, unsealed := pool.Exec(t.Context(), `UPDATE credentials SET value = $1`, plain)
	_, marshalled := json.Marshal(map[string]any{"value": plain})
	var body struct{ Value vault.Value }
	exec(t, pool, `UPDATE credentials SET in_query = true WHERE workspace_id = $1`, w)
	_, changed := s.Open(t.Context(), w, []string{"TOKEN"})
	for what, err := range map[string]error{
		"unknown": provide(plain, "OTHER"), "a tab": provide(secret(value+"\t"+value), "TOKEN"),
		"too long": provide(secret(strings.Repeat(value, 2000)), "TOKEN"),
		"closed":   s.Provide(t.Context(), tx, w, "TOKEN", plain, me), "unprepared": unprepared, "bound": bound, "unsealed": unsealed,
		"marshalled": marshalled,
		"no string":  json.Unmarshal([]byte(`{"value":[`+quote(value)+`]}`), &body), "changed": changed, "panic": panicked(plain, log),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
		note(what, err)
	}

	sources := append(canary.Server(server, dsn), canary.Bytes("service log", logged.Bytes()))
	canary.Sweep(t, value, sources...)

	exec(t, pool, `CREATE TABLE careless (value text)`)
	exec(t, pool, `INSERT INTO careless VALUES ($1)`, value)
	log.Info("careless", "value", value)
	found := canary.Find(t, value, append(canary.Server(server, dsn), canary.Bytes("service log", logged.Bytes()))...)
	for _, s := range sources {
		if !slices.ContainsFunc(found, func(f canary.Finding) bool { return f.Source == s.Name }) {
			t.Errorf("the search finds nothing in %s", s.Name)
		}
	}
}

// panicked returns a panic as a worker reports it.
func panicked(v vault.Value, log *slog.Logger) (err error) {
	defer func() {
		err = fmt.Errorf("panic: %v", recover())
		log.Error("panic", "err", err, "stack", string(debug.Stack()))
	}()
	panic(errors.Join(errors.New("with a value"), fmt.Errorf("%v %+v %#v %d", v, v, v, v)))
}

func quote(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}
