package permission_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/testing/need"
)

// isSpecial are the characters with a meaning in bash.
const isSpecial = "$`\\*?[]{}~!#<>|&;()'\"=%^@+-,./: "

// piece draws a part of a word: plain, quoted, or sometimes anything.
func piece() *rapid.Generator[string] {
	plain := rapid.StringMatching(`[A-Za-z0-9%+,\-./:=@^_]{1,6}`)
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 14).Draw(t, "kind") {
		case 0, 1:
			return "'" + rapid.StringMatching(`[ -&(-~]{0,8}`).Draw(t, "single") + "'"
		case 2, 3:
			return `"` + rapid.StringMatching(`[ !#%-\[\]-_a-~]{0,8}`).Draw(t, "double") + `"`
		case 4:
			return rapid.StringOfN(rapid.RuneFrom([]rune(isSpecial)), 1, 3, -1).Draw(t, "special")
		}
		return plain.Draw(t, "plain")
	})
}

// rest draws the text after the first word of a command.
func rest() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(0, 4).Draw(t, "words") {
			b.WriteString(strings.Repeat(" ", rapid.IntRange(1, 2).Draw(t, "blanks")))
			for range rapid.IntRange(1, 3).Draw(t, "pieces") {
				b.WriteString(piece().Draw(t, "piece"))
			}
		}
		return b.String()
	})
}

// first draws the first word: a program that does not exist, or a word of the grammar, which bash
// must not treat as grammar if we did not.
var first = rapid.SampledFrom([]string{"git", "git", "git", "git", "'git'", `g"i"t`, "a-b.c_1", "1=2", "time", "if", "'if'", "then", "!",
	"{", "[[", "((", "coproc",
	"function", "select", "in", "do", "a=b", "a+=b", "a[0]=b", "a=b git", "git()", "-x", "=x", "+x", "@x", "%x", "^a^b", "case", "for", "#x"})

// TestBashPassesOnWhatWeRead runs every accepted command in bash and compares the words. No program
// can be found there, and a function replaces the first word: it prints its arguments.
func TestBashPassesOnWhatWeRead(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		need.Missing(t, "no bash")
	}
	dir, accepted := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		var want [][]string
		script := "p() { builtin printf '%s\\0' \"$#\" \"$@\"; }\ncommand_not_found_handle() { p \"$@\"; }\n"
		for range 150 {
			name, tail := first.Draw(r, "first"), rest().Draw(r, "rest")
			argv := permission.Argv(name + tail)
			if argv == nil {
				continue
			}
			want = append(want, argv[1:], argv)
			script += "p" + tail + "\np " + name + tail + "\n"
			if accepted++; len(want)%24 == 0 { // one process each: bash looks for the program
				want = append(want, argv)
				script += name + tail + "\n"
			}
		}
		run := exec.CommandContext(t.Context(), shell, "--noprofile", "--norc", "-r", "-c", script)
		run.Dir, run.Env = dir, []string{"PATH=/nonexistent", "HOME=/nonexistent"}
		var errs strings.Builder
		run.Stderr = &errs
		out, err := run.Output()
		if err != nil && errs.Len() > 0 {
			r.Fatalf("bash: %v: %s\n%s", err, errs.String(), script)
		}
		got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		for _, argv := range want {
			if len(got) == 0 || got[0] != strconv.Itoa(len(argv)) || len(got) <= len(argv) || !slices.Equal(got[1:len(argv)+1], argv) {
				r.Fatalf("bash passes on %q, we read %q\n%s", got[:min(len(got), len(argv)+1)], argv, script)
			}
			got = got[len(argv)+1:]
		}
		if len(want) > 0 && len(got) > 0 {
			r.Fatalf("bash ran more: %q\n%s", got, script)
		}
	})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the commands left %v behind, %v", entries, err)
	}
	if accepted < 2500 && !testing.Short() { // with -short, rapid draws a fifth of the cases
		t.Errorf("only %d commands were accepted", accepted)
	}
	t.Logf("%d commands", accepted)
}

// poison are additions that turn one command into more than that.
var poison = []string{";", "; evil", "&&", " && evil", "||evil", "|", " | sh", "|&sh", "&", " & evil", "\n", "\nevil", "\r", "\t", "\x00",
	"\x00evil",
	"$(evil)", " $(evil)", "`evil`", " \"$(evil)\"", "$X", " ${X}", "$((1))", "$'x'", ">", " > f", ">>f", " 2>&1", "<f", " <<X", " <(evil)",
	" >(evil)",
	" *", "?", "[a]", " {a,b}", " ~", "~1", "\\", " \\x", " #x", "(", ")", " -x", " --output=f", " +x", " @f", "é", "\u202e",
	"\u00a0x", "'", "\""}

// coverNothingMore checks the promise of a bash pattern: a covered command is no longer covered
// when something is added that could run, read or write more.
func coverNothingMore(t *rapid.T) {
	var words []string
	for range rapid.IntRange(1, 4).Draw(t, "words") {
		words = append(words, rapid.StringMatching(`[a-z][a-z0-9.:=_-]{0,5}|'[ -&(-~]{0,6}'|--[a-z]{1,5}|[ -~]{0,5}`).Draw(t, "word"))
	}
	argument := strings.Join(words, " ") + rapid.SampledFrom([]string{"", " *", ":*"}).Draw(t, "end")
	p, err := permission.Parse("bash(" + argument + ")")
	if err != nil {
		return
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(p.String(), "bash("), ")")
	command, open := strings.CutSuffix(inner, " *")
	if again, err := permission.Parse(p.String()); err != nil || again.String() != p.String() {
		t.Fatalf("%s reads as %q, %v", p, again, err)
	}
	operands := rest().Draw(t, "operands")
	for _, c := range []string{command, command + operands} {
		covered := p.Matches("bash", bash(c))
		switch {
		case c == command && !covered:
			t.Fatalf("%s does not cover %q", p, c)
		case c != command && covered && !open && len(permission.Argv(c)) != len(permission.Argv(command)):
			t.Fatalf("%s covers %q", p, c)
		case !covered:
			continue
		}
		for _, more := range poison {
			if p.Matches("bash", bash(c+more)) {
				t.Fatalf("%s covers %q", p, c+more)
			}
		}
		// longer than any word
		for _, before := range []string{"evil;", "evil|", "evil &&", "!", "! ", "A=b ", "time ", ">f ", "\n", "wrapper ", "nohupnohup "} {
			if p.Matches("bash", bash(before+c)) {
				t.Fatalf("%s covers %q", p, before+c)
			}
		}
		if s := permission.Suggest("bash", bash(c)); s != "" {
			if p, err := permission.Parse(s); err != nil || !p.Matches("bash", bash(c)) {
				t.Fatalf("%q is suggested for %q: %v", s, c, err)
			}
		}
	}
}

func TestPatternsCoverNothingMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, coverNothingMore)
}

func FuzzPatternsCoverNothingMore(f *testing.F) { f.Fuzz(rapid.MakeFuzz(coverNothingMore)) }

// FuzzPatternsAndCalls passes any input to the two parsers.
func FuzzPatternsAndCalls(f *testing.F) {
	f.Add("bash(git diff *)", "bash", `{"command":"git diff HEAD"}`)
	f.Add("wiki_write(a/**/b)", "wiki_write", `{"page":"a/x/b","content":""}`)
	f.Add("write(*.csv)", "write", `{"path":"a.csv","content":""}`)
	f.Add("http_request(GET a.example/**)", "http_request", `{"url":"https://a.example/v1?x=1","headers":{"A":"b"}}`)
	f.Fuzz(func(t *testing.T, pattern, tool, input string) {
		raw := []byte(input)
		if s := permission.Suggest(tool, raw); s != "" {
			if p, err := permission.Parse(s); err != nil || !p.Matches(tool, raw) {
				t.Fatalf("%q is suggested for %s: %v", s, input, err)
			}
		}
		p, err := permission.Parse(pattern)
		if err != nil {
			return
		}
		again, err := permission.Parse(p.String())
		if err != nil || again.String() != p.String() || again.Matches(tool, raw) != p.Matches(tool, raw) {
			t.Fatalf("%q is stored as %q, which reads as %q, %v", pattern, p, again, err)
		}
		if p.Matches(tool, raw) {
			for _, more := range poison[:26] {
				if p.Matches(tool, []byte(input+more)) && strings.TrimSpace(more) != "" {
					t.Fatalf("%s covers %s", p, input+more)
				}
			}
		}
		if fmt.Sprint(p) == "" {
			t.Fatal("a pattern without text")
		}
	})
}
