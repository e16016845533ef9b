// Package pdftext extracts the text of PDF files that users sent. A file is hostile: it can make a
// parser loop, recurse, or unpack terabytes. So only a second process of this executable parses it,
// with limits on memory, processor time and time, without an environment, without files and, where
// the kernel allows it, without a network. A file can end that process and nothing else.
//
// Importing the package is enough: its init detects the second process and never returns.
package pdftext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxText is how many bytes of a file's text are extracted.
	MaxText = 1 << 20
	// MaxPages is how many pages of a file are read.
	MaxPages = 2000
)

// The limits of the process.
const (
	maxTime   = 20 * time.Second
	maxMemory = 512 << 20 // bytes
	maxStack  = 32 << 20  // bytes
)

var maxCPU = 10 // seconds of processor time

// argument selects the second process.
const argument = "parley-pdf-text"

// The exit codes of the second process. Any other one is a limit.
const (
	exitDone      = 0
	exitEncrypted = 3
	exitBroken    = 4
	exitNoText    = 5
)

// Extract returns the text of a PDF, with a line before each page, and a last line in brackets if it is
// not complete or there is none. An error says that no process could parse it, or that ctx has ended.
func Extract(ctx context.Context, pdf []byte) (string, error) {
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	text, code, err := runParser(limited, pdf)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	note := ""
	switch {
	case code == exitDone && len(text) < MaxText:
	case code == exitDone:
		note = fmt.Sprintf("[cut here: at most %d bytes of a PDF's text are read]", MaxText)
	case code == exitEncrypted:
		note = "[The PDF has no text that can be read: it is encrypted.]"
	case code == exitBroken:
		note = "[The PDF has no text that can be read: it is not a valid PDF, or of a kind that is not supported.]"
	case code == exitNoText:
		note = "[The PDF has no text: its pages are images, or empty.]"
	case text == "":
		note = "[The PDF has no text that can be read: reading it takes too much time or memory.]"
	default:
		note = "[cut here: reading the rest of the PDF takes too much time or memory]"
	}
	if text != "" && note != "" {
		text = strings.TrimRight(text, "\n") + "\n"
	}
	return text + note, nil
}

// runParser runs the second process. It returns the valid part of the text, and the exit code, -1 if a
// limit ended the process. An error says that it did not start.
func runParser(ctx context.Context, pdf []byte) (text string, code int, err error) {
	var out limitedBuffer
	newCommand := func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, executable(), argument, strconv.Itoa(maxCPU))
		cmd.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=1"}
		cmd.Dir = os.TempDir()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(pdf), &out, nil
		cmd.WaitDelay = time.Second
		return cmd
	}
	cmd := newCommand()
	isolate(cmd)
	if err := cmd.Start(); err != nil { // the kernel does not allow new namespaces
		cmd = newCommand()
		if err := cmd.Start(); err != nil {
			return "", 0, fmt.Errorf("start the parser of PDFs: %w", err)
		}
	}
	err = cmd.Wait()
	code = exitDone
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil && !out.full() {
		code = -1
	}
	if out.full() {
		code = exitDone
	}
	return strings.ReplaceAll(strings.ToValidUTF8(out.String(), ""), "\x00", "\uFFFD"), code, nil
}

// executable returns the path of this executable, also if it was replaced since.
func executable() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// limitedBuffer takes MaxText bytes and rejects more, which ends the writer.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) full() bool { return b.Len() >= MaxText }

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), MaxText-b.Len())
	_, _ = b.Buffer.Write(p[:n]) // into memory
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
