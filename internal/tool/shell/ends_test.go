package shell

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestBothEndsAreKept compares the result with a slice of the whole output.
func TestBothEndsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e ends
		var all []byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 300<<10), 0, 8).Draw(t, "writes") {
			p := bytes.Repeat([]byte{byte('a' + i)}, n)
			for j := range p {
				if j%97 == 0 {
					p[j] = byte('0' + j%10)
				}
			}
			if wrote, err := e.Write(p); wrote != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", wrote, n, err)
			}
			all = append(all, p...)
		}
		want := string(all)
		if lost := len(all) - keepHead - keepTail; lost > 0 {
			want = string(all[:keepHead]) + fmt.Sprintf("\n[%d bytes are left out here]\n", lost) + string(all[len(all)-keepTail:])
		}
		if got := e.String(); got != want {
			t.Fatalf("%d bytes written: kept %d, want %d", len(all), len(got), len(want))
		}
	})
}

// TestMarksDoNotChangeWhatIsLeftOut prints the same bytes with and without marks at any place: the
// number of omitted bytes and all other text stay the same.
func TestMarksDoNotChangeWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	const mark = "[secret:PIN]"
	rapid.Check(t, func(t *rapid.T) {
		var plain, redacted ends
		write := func(n int) {
			p := bytes.Repeat([]byte("x"), n)
			plain.Write(p)
			redacted.Write(p)
		}
		var spans [][2]int
		total := 0
		for range rapid.IntRange(1, 5).Draw(t, "marks") {
			before, length := rapid.IntRange(0, 400<<10).Draw(t, "before"), rapid.IntRange(4, 9000).Draw(t, "length")
			write(before)
			plain.Write(bytes.Repeat([]byte("#"), length))
			if err := redacted.WriteMark(mark, length); err != nil {
				t.Fatal(err)
			}
			spans = append(spans, [2]int{total + before, total + before + length})
			total += before + length
		}
		write(rapid.IntRange(0, 400<<10).Draw(t, "after"))
		total = int(plain.total)
		marks := 0
		for _, s := range spans {
			head, tail := s[0] < keepHead, s[1] > total-keepTail
			if head && tail && s[1] > keepHead && s[0] < total-keepTail && total > keepHead+keepTail {
				marks++ // on both sides of the gap
			}
			if head || tail || total <= keepHead+keepTail {
				marks++
			}
		}
		got, want := redacted.String(), plain.String()
		if n := strings.Count(got, mark); n != marks {
			t.Fatalf("%d marks, want %d: %v of %d", n, marks, spans, total)
		}
		if strings.Count(got, "x") != strings.Count(want, "x") || strings.ContainsAny(got, "#\x00") || leftOut(got) != leftOut(want) {
			t.Fatalf("%q and %q, %d and %d bytes", leftOut(got), leftOut(want), len(got), len(want))
		}
	})
}

// leftOut returns the line about the omitted bytes, or "".
func leftOut(s string) string {
	if at := strings.Index(s, " bytes are left out here]"); at >= 0 {
		return s[strings.LastIndexByte(s[:at], '['):at]
	}
	return ""
}

// TestManyMarksTakeLittleMemory prints only marks.
func TestManyMarksTakeLittleMemory(t *testing.T) {
	t.Parallel()
	var e ends
	for range 1 << 20 {
		if err := e.WriteMark("[secret:PIN]", 8); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.marks) > 2*(keepHead+keepTail)/8 {
		t.Errorf("%d marks are kept", len(e.marks))
	}
	if n := strings.Count(e.String(), "[secret:PIN]"); n != (keepHead+keepTail)/8 {
		t.Errorf("%d marks are shown", n)
	}
}

func TestCommandsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`[]`:                                     "JSON object",
		`{}`:                                     `"command" is required`,
		`{"command":" "}`:                        `"command" is required`,
		`{"command":7}`:                          `"command" must be a string`,
		`{"command":"a\u0000b"}`:                 "NUL",
		`{"command":"ls","timeout_seconds":601}`: "1 to 600",
		`{"command":"ls","timeout_seconds":-1}`:  "1 to 600",
		`{"command":"ls","timeout_seconds":"1 h"}`:                "whole number",
		`{"command":"` + strings.Repeat("x", maxCommand+1) + `"}`: "too long",
	} {
		if _, wrong := parseInput([]byte(input)); !strings.Contains(wrong, want) {
			t.Errorf("%.60s: %q, want %q", input, wrong, want)
		}
	}
}
