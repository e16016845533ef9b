package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

// awaitCommand waits until the command begins and returns the services for its ports. It also ends
// when the process does. Its error is the reason why the command did not begin.
func (p *process) awaitCommand(ports []port) (services []service, err error) {
	defer func() {
		if err != nil {
			closeAll(services)
			services = nil
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
			return services, err
		}
		if text[0] == inside.Failed {
			return services, errors.New(string(text[1:n]))
		}
		if services, err = p.storeDescriptors(rights[:nrights], ports); err != nil {
			return services, err
		}
		p.letProceed()
		ready = true
	}
	if !ready {
		return nil, errors.New("it did not begin")
	}
	return services, nil
}

// storeDescriptors stores the descriptors that the second stage passed.
func (p *process) storeDescriptors(rights []byte, ports []port) (services []service, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("the second stage passed nothing: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("read what the second stage passed: %w", err)
	}
	process1 := os.NewFile(uintptr(fds[0]), "process 1")
	// Process 1 is killed in the end, so it must not be the first process of our own namespace.
	if pid, nested := pidOf(process1); !nested {
		process1.Close()
		err = errors.New("it has no process namespace of its own")
	} else {
		p.mu.Lock()
		p.process1 = process1
		p.mu.Unlock()
		err = killFirst(pid)
	}
	if len(fds) != 1+len(ports) {
		err = errors.New("the second stage passed sockets that were not requested")
	}
	for i, fd := range fds[1:] {
		f := os.NewFile(uintptr(fd), "socket")
		if err == nil {
			var s service
			if s, err = ports[i].openService(f); err == nil {
				services = append(services, s)
			}
		}
		f.Close()
	}
	return services, err
}

// letProceed lets the second stage continue, unless the process was killed meanwhile.
func (p *process) letProceed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.killed {
		_, _ = p.control.Write([]byte{'\n'}) // an error means that the process has ended, which the next read reports
	}
}

func closeAll(services []service) {
	for _, s := range services {
		s.Close()
	}
}
