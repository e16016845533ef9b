package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ownTools is a file of tools, and ownCalls a message whose turn calls them.
const (
	ownTools = `[{"name":"get_weather","description":"The weather.","input_schema":{"type":"object",` +
		`"properties":{"city":{"type":"string"}}}},{"name":"get_time"}]`
	ownCalls = "@call get_weather {\"city\":\"Paris\"} get_time {}\n@say Done."
)

// TestSendWithOwnTools: at a terminal the user is asked for the result of each call; elsewhere the
// command ends and prints how to post them.
func TestSendWithOwnTools(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	if err := os.WriteFile(filepath.Join(sh.dir, "tools.json"), []byte(ownTools), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sh.attend("send", "--tools", "@tools.json", ownCalls)
	p.sees("? get_weather {\"city\":\"Paris\"} needs a result: call_")
	p.sees("Result of get_weather {\"city\":\"Paris\"} (text or JSON; empty: it failed): ")
	p.types("{\"celsius\": 21}\n")
	p.sees("Result of get_time {} ")
	p.types("\n")
	p.sees("← get_weather {\"celsius\":21}")
	p.sees("✗ get_time failed: The user gave no result.")
	p.ends(0)
	if p.out.String() != "Done.\n" {
		t.Errorf("stdout is %q", p.out)
	}

	for _, output := range []string{"text", "json"} {
		out, errs, code := sh.run("send", "--no-input", "--output", output, "--tools", ownTools, ownCalls)
		if code != 3 || output == "json" && !strings.Contains(out, `"error":"tool_required"`) {
			t.Fatalf("%s: exit code %d, %s%s", output, code, out, errs)
		}
		if output == "json" {
			continue
		}
		_, command, found := strings.Cut(errs, "Resume it: parley ")
		if !found || !regexp.MustCompile(`Post the results by .*:\n  curl "\$PARLEY_URL/api`).MatchString(errs) ||
			!strings.Contains(errs, `/tool-results"`) || !strings.Contains(errs, `"tool_use_id":"call_`) {
			t.Fatalf("%s", errs)
		}
		p := sh.attend("sessions", "tail", strings.Fields(command)[2], "--after", "0")
		p.sees("? get_time {} needs a result: call_")
		p.sees("Waiting for another client. ")
		p.interrupts <- os.Interrupt
		p.ends(130)
	}
	for _, tools := range []string{"{}", "@nowhere.json", `[{"name":"x","parameters":{}}]`, "x"} {
		if _, errs, code := sh.run("send", "--tools", tools, "hello"); code != 2 {
			t.Errorf("%s: exit code %d, %s", tools, code, errs)
		}
	}
}
