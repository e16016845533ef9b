package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// terminal reports whether somebody looks at w.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) // /dev/null is a device too
}

// columns is the width of the terminal w, 80 where it does not tell, 0 where w is none.
func columns(w any) int {
	f, ok := w.(*os.File)
	if !ok || !terminal(w) {
		return 0
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return 80
}

// piped reports whether r has something to say that nobody types.
func piped(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}

// fed reports whether r can be read by a command that has to: also a socket, which programs
// give to those that they start, and which may never say anything.
func fed(r io.Reader) bool {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeSocket != 0 {
			return true
		}
	}
	return piped(r)
}

// env is a variable of the surroundings.
func (h Host) env(name string) string {
	for _, line := range h.Environ {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// colours reports whether stderr may be coloured.
func (h Host) colours() bool {
	switch {
	case h.env("NO_COLOR") != "":
		return false
	case h.env("CLICOLOR_FORCE") != "" && h.env("CLICOLOR_FORCE") != "0":
		return true
	}
	return terminal(h.Stderr) && h.env("TERM") != "dumb"
}

// visible writes control characters out, so that a model cannot steer somebody's
// terminal. Line ends and tabs stay.
func visible(s string) string {
	return escape(s, func(r rune) bool { return hidden(r) && r != '\n' && r != '\t' })
}

// plainLine is visible on one line, for names and summaries.
func plainLine(s string) string { return escape(strings.Join(strings.Fields(s), " "), hidden) }

// plainLines is visible for messages of several lines.
func plainLines(s string) string { return visible(strings.TrimSpace(s)) }

// exact is visible for what somebody is to approve: nothing of it is dropped, and
// nothing is there that cannot be seen.
func exact(s string) string { return escape(s, unseen) }

// escape writes characters out as JSON would.
func escape(s string, out func(rune) bool) string {
	if !strings.ContainsFunc(s, out) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !out(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// hidden tells control and direction characters.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// unseen tells every character that leaves no mark, or that of a blank: those that are
// hidden, of no width, blanks but the one, fillers, and what no font has.
func unseen(r rune) bool {
	return !unicode.IsPrint(r) || r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
