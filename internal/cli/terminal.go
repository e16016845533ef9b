package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/parley-server/parley/internal/text"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) // /dev/null is a device as well
}

// terminalColumns returns the width of the terminal w, 80 if it is unknown, 0 if w is not a
// terminal.
func terminalColumns(w any) int {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
		return 0
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return 80
}

// isPiped reports whether r is a pipe or a file.
func isPiped(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return r != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}

// isFed reports whether r can be read by a command that needs stdin. That includes a socket, which
// programs pass to the processes that they start, and which may never send anything.
func isFed(r io.Reader) bool {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeSocket != 0 {
			return true
		}
	}
	return isPiped(r)
}

// envValue returns a variable of the environment.
func (h Host) envValue(name string) string {
	for _, line := range h.Environ {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// hasColours reports whether stderr may be colored.
func (h Host) hasColours() bool { return h.hasColoursOn(h.Stderr) }

// hasColoursOn reports whether w, stdout or stderr, may be colored.
func (h Host) hasColoursOn(w any) bool {
	switch {
	case h.envValue("NO_COLOR") != "":
		return false
	case h.envValue("CLICOLOR_FORCE") != "" && h.envValue("CLICOLOR_FORCE") != "0":
		return true
	}
	return isTerminal(w) && h.envValue("TERM") != "dumb"
}

// escapeControls escapes control characters, so that a model cannot control the terminal. Newlines
// and tabs stay.
func escapeControls(s string) string {
	return text.EscapeFunc(s, func(r rune) bool { return text.IsTerminalControl(r) && r != '\n' && r != '\t' })
}

// plainLine is escapeControls for names and summaries, on one line.
func plainLine(s string) string {
	return text.EscapeFunc(strings.Join(strings.Fields(s), " "), text.IsTerminalControl)
}

// plainLines is escapeControls for messages of several lines.
func plainLines(s string) string { return escapeControls(strings.TrimSpace(s)) }
