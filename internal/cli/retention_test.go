package cli_test

import (
	"encoding/json"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestASessionIsErasedAtTheCommandLine(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	sh.environ = append(sh.environ, "USER=anna")
	sh.must("send", "@say a word that nobody else says", "--caller", "bob")
	sessions := func() string { return sh.must("sessions", "list", "--json") }
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sessions()), &list); err != nil || len(list.Data) != 1 {
		t.Fatalf("%v: %s", err, sessions())
	}
	id := list.Data[0].SessionID
	for what, c := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"not confirmed": {[]string{id}, "n\n", "Nothing was erased."},
		"nobody there":  {[]string{id}, "", "Nothing was erased."},
		"no id":         {[]string{"bob", "--yes"}, "", "is not a session id"},
		"unknown":       {[]string{uuid.NewString(), "--yes"}, "", "does not exist in this workspace"},
		"nothing":       {nil, "", "SESSION is missing"},
	} {
		if _, errs, code := sh.pipe(strings.NewReader(c.stdin), append([]string{"sessions", "erase"}, c.args...)...); code != 2 ||
			!strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s", what, code, errs)
		}
	}
	if !strings.Contains(sessions(), "nobody else") {
		t.Fatal("it was already deleted")
	}
	if _, errs, code := sh.pipe(strings.NewReader("yes\n"), "sessions", "erase", id); code != 0 ||
		!strings.Contains(errs, "permanently?") || !strings.Contains(errs, "Erased the session.") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if got := sessions(); strings.Contains(got, "nobody else") || strings.Contains(got, "bob") || !strings.Contains(got, "erased_at") {
		t.Errorf("%s", got)
	}
	if _, errs, code := sh.run("sessions", "erase", id, "--yes"); code != 0 ||
		!strings.Contains(errs, "erased before, at "+time.Now().Format("2006-")) {
		t.Errorf("again: exit code %d: %s", code, errs)
	}
	if _, errs, code := sh.run("send", "hello", "--session", id); code == 0 || !strings.Contains(errs, "was erased") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestErasingEndsATurnThatRuns checks that the command cancels a turn that runs on a server.
func TestErasingEndsATurnThatRuns(t *testing.T) {
	t.Parallel()
	sh, _, dsn := world(t)
	k := sh.start("send", "@say hello\n@wait 10m", "--caller", "bob", "--output", "stream-json")
	k.out.wait(t, "hello")
	var open struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--json")), &open); err != nil || len(open.Data) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	if _, errs, code := sh.run("sessions", "erase", open.Data[0].SessionID, "--yes"); code != 0 ||
		!strings.Contains(errs, "Canceled 1 turn.") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code := wait.Receive(t, "the exit code", k.code); code == 0 || !strings.Contains(k.out.String(), `"canceled"`) {
		t.Errorf("exit code %d: %s", code, k.out.String())
	}
	var canceler, protocol, eraser string
	err := dbtest.Pool(t, dsn).QueryRow(t.Context(),
		`SELECT t.canceled_by_kind, t.canceled_protocol, s.erased_by FROM audit.turns t JOIN audit.sessions s USING (session_id)`).
		Scan(&canceler, &protocol, &eraser)
	if err != nil || canceler != "command" || protocol != "rest" || eraser != systemUser(t) {
		t.Errorf("the audit has %v, %q, %q, %q", err, canceler, protocol, eraser)
	}
}

// systemUser is the name of a command's user in records.
func systemUser(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return "cli:" + u.Username
}

func TestRetentionTellsWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	out, errs, code := sh.run("retention")
	if code != 0 || !strings.Contains(out, "events_delta_"+time.Now().UTC().Format("20060102")) ||
		!strings.Contains(out, "events_record_") || !strings.Contains(errs, "Text is needed from") ||
		!strings.Contains(out, "BYTES") || !strings.Contains(errs, "PARLEY_AUDIT_RETENTION of this command") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	var list struct {
		Data []struct {
			Partition, Holds string
			Until            time.Time
			Bytes            int64
		}
	}
	if err := json.Unmarshal([]byte(sh.must("retention", "--json")), &list); err != nil || len(list.Data) < 6 {
		t.Fatalf("%v: %+v", err, list)
	}
	for _, p := range list.Data {
		if p.Bytes <= 0 || p.Until.IsZero() || strings.Contains(p.Partition, "delta") != (p.Holds == "text") {
			t.Errorf("%+v", p)
		}
	}
}
