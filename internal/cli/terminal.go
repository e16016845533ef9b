package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// terminal reports whether somebody looks at w.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// plainLine is visible on one line, for names and summaries.
func plainLine(s string) string {
	return escape(strings.Join(strings.Fields(s), " "), func(rune) bool { return false })
}

// plainLines is visible for messages of several lines.
func plainLines(s string) string { return visible(strings.TrimSpace(s)) }

func escape(s string, keep func(rune) bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hidden(r) && !keep(r) }) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) && !keep(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hidden tells control and direction characters.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
