package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/parley-server/parley/internal/text"
)

// terminal reports whether w is a terminal.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) // /dev/null is a device as well
}

// columns returns the width of the terminal w, 80 if it is unknown, 0 if w is not a terminal.
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

// piped reports whether r is a pipe or a file.
func piped(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}

// fed reports whether r can be read by a command that needs stdin. That includes a socket, which
// programs pass to the processes that they start, and which may never send anything.
func fed(r io.Reader) bool {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeSocket != 0 {
			return true
		}
	}
	return piped(r)
}

// env returns a variable of the environment.
func (h Host) env(name string) string {
	for _, line := range h.Environ {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// colours reports whether stderr may be colored.
func (h Host) colours() bool {
	switch {
	case h.env("NO_COLOR") != "":
		return false
	case h.env("CLICOLOR_FORCE") != "" && h.env("CLICOLOR_FORCE") != "0":
		return true
	}
	return terminal(h.Stderr) && h.env("TERM") != "dumb"
}

// visible escapes control characters, so that a model cannot control the terminal. Newlines and
// tabs stay.
func visible(s string) string {
	return text.EscapeFunc(s, func(r rune) bool { return text.IsTerminalControl(r) && r != '\n' && r != '\t' })
}

// plainLine is visible for names and summaries, on one line.
func plainLine(s string) string {
	return text.EscapeFunc(strings.Join(strings.Fields(s), " "), text.IsTerminalControl)
}

// plainLines is visible for messages of several lines.
func plainLines(s string) string { return visible(strings.TrimSpace(s)) }
