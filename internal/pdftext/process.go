package pdftext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/ledongthuc/pdf"
)

func init() {
	if len(os.Args) == 3 && os.Args[1] == argument {
		os.Exit(parse(os.Args[2]))
	}
}

// parse is the second process: it reads a PDF from stdin and writes its text to stdout, page by page.
func parse(seconds string) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // they are for the server, which ends this process
	if err := limitProcess(seconds); err != nil {
		return 1
	}
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory / 2)
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	// The parser knows 1.x, and 2.0 differs in nothing that matters for the text.
	data = bytes.TrimLeft(data, "\x00\t\n\r ")
	if len(data) > 8 && bytes.HasPrefix(data, []byte("%PDF-2.0")) {
		copy(data, "%PDF-1.7")
	}
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return exitEncrypted
	}
	if err != nil {
		return exitBroken
	}
	out := bufio.NewWriter(os.Stdout)
	code := writeText(out, r)
	if out.Flush() != nil {
		return 1
	}
	return code
}
