package toolenv_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/shell"
	"github.com/parley-server/parley/internal/toolenv"
)

// call runs a command with the tool and returns what the model reads.
func call(t *testing.T, run *toolenv.Run, command string) string {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	res, err := shell.Tool(run).Call(t.Context(), tool.Call{ID: "c", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return res.Output
}

// TestCandidatesShowNoMatch prints ranges of PINs in a workspace whose PIN is among them, and in
// one whose PIN is not: short ranges, truncated ones, and encoded ones.
func TestCandidatesShowNoMatch(t *testing.T) {
	t.Parallel()
	const pin, other = 48151623, 99999999
	var outputs [2][]string
	for i, value := range []int{pin, other} {
		w := newWorld(t).contained(t)
		w.register(t, "PIN", fmt.Sprint(value))
		for _, credentials := range [][]string{{"PIN"}, nil} { // used by the run, and by others
			run := w.begin(t, w.turn(t, credentials...))
			for _, command := range []string{
				fmt.Sprintf("seq %d %d", pin-1000, pin+1000), fmt.Sprintf("seq %d %d", pin-10000, pin+10000),
				fmt.Sprintf("seq %d %d | base64", pin-10000, pin+10000),
				fmt.Sprintf("seq -s , %d %d", pin-10, pin+10), fmt.Sprintf("printf '\"%%s\"' %d", pin), fmt.Sprintf("echo %d >&2; exit 3", pin),
			} {
				outputs[i] = append(outputs[i], call(t, run, command))
			}
			outputs[i] = append(outputs[i], fetchAttachment(t, run, fmt.Sprintf("https://example.com/secret/%d", pin), ""))
			run.Close()
		}
	}
	for i, got := range outputs[0] {
		if got != outputs[1][i] || strings.Contains(got, "[secret:") {
			t.Errorf("output %d is %d bytes, %d for another PIN: %.300s", i, len(got), len(outputs[1][i]), got)
		}
	}
}

// TestGuessableValuesAreHiddenInAnswers lets commands and http_request read a PIN in a server's
// response, also after the range of candidates was printed.
func TestGuessableValuesAreHiddenInAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "PIN", "48151623")
	run := w.begin(t, w.turn(t, "PIN"))
	if got := fetchAttachment(t, run, "https://example.com/", "PIN"); got != "you sent Bearer [secret:PIN]" {
		t.Errorf("%q", got)
	}
	got := call(t, run, `curl -sS -H "Authorization: Bearer $PIN" https://example.com/; seq 48151622 48151624`)
	if want := "you sent Bearer [secret:PIN]\n48151622\n48151623\n48151624\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBytesLeftOutAreThoseThatWerePrinted prints a value that cannot be guessed in the omitted part
// of an output: the number of bytes is the same as with other text.
func TestBytesLeftOutAreThoseThatWerePrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "API_TOKEN", value)
	run := w.begin(t, w.turn(t))
	for _, text := range []string{value, strings.Repeat("x", len(value))} {
		for _, at := range []string{"900000", "10"} { // in the omitted part, and before it
			got := call(t, run, fmt.Sprintf("head -c %s /dev/zero | tr '\\0' a; echo -n %s; head -c 2000000 /dev/zero | tr '\\0' b", at, text))
			var lost int
			if _, after, ok := strings.Cut(got, "\n["); ok {
				if _, err := fmt.Sscanf(after, "%d bytes are left out here]", &lost); err != nil {
					t.Fatalf("%.100q: %v", after, err)
				}
			}
			printed := len(value) + 2_000_000 + map[string]int{"900000": 900_000, "10": 10}[at]
			if lost != printed-1<<20 {
				t.Errorf("%d of %d bytes are omitted", lost, printed)
			}
		}
	}
}
