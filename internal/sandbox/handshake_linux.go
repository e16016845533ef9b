package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/sandbox/inside"
)

// handshake waits until the command begins and returns its listeners. It ends when the
// process does, too. An error says why there is no command.
func (p *process) handshake() (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			closeAll(listeners)
			listeners = nil
		}
	}()
	ready := false
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(16*4))
	for {
		n, nrights, _, _, err := p.control.ReadMsgUnix(text, rights)
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			break
		}
		if err != nil {
			return listeners, err
		}
		if text[0] == inside.Failed {
			return listeners, errors.New(string(text[1:n]))
		}
		if listeners, err = p.take(rights[:nrights]); err != nil {
			return listeners, err
		}
		ready = true
	}
	if !ready {
		return nil, errors.New("it did not begin")
	}
	return listeners, nil
}

// take keeps what the second stage passed.
func (p *process) take(rights []byte) (listeners []net.Listener, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("the second stage passed nothing: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("read what the second stage passed: %w", err)
	}
	process1 := os.NewFile(uintptr(fds[0]), "process 1")
	// It is killed in the end, so it must not be the first process of our own namespace.
	if _, nested := pidOf(process1); !nested {
		process1.Close()
		err = errors.New("it has no process namespace of its own")
	} else {
		p.follow(process1)
	}
	for _, fd := range fds[1:] {
		f := os.NewFile(uintptr(fd), "listener")
		l, e := net.FileListener(f)
		f.Close()
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		listeners = append(listeners, l)
	}
	return listeners, err
}

// follow tells the second stage to go on, unless the process was killed meanwhile.
func (p *process) follow(process1 *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process1 = process1
	if !p.killed {
		_, _ = p.control.Write([]byte{'\n'}) // an error means that it is gone, which the next read says
	}
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}
