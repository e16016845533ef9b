package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	memoryEvery = 100 * time.Millisecond
	folderEvery = 250 * time.Millisecond
)

// checkEvery calls look until it returns a reason to kill the process, or the process has ended. A
// slow look is repeated less often.
func (p *process) checkEvery(pause time.Duration, look func() limit) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-timer.C:
		}
		began := time.Now()
		if reason := look(); reason != "" {
			p.killAll(reason)
			return
		}
		timer.Reset(max(pause, 10*time.Since(began)))
	}
}

// watchMemory limits the memory of all processes together if the kernel does not, and the number of
// files in memory, because sizes do not include their names.
func (p *process) watchMemory(process1 string, l Limits) {
	p.checkEvery(memoryEvery, func() limit {
		if p.group == nil && passesMemory(process1, l.Memory) {
			return tooMuchMemory(l)
		}
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			if countFiles("/proc/"+process1+"/root"+dir) > l.Files {
				return limit(fmt.Sprintf("killed: it has more than %d files in %s", l.Files, dir))
			}
		}
		return ""
	})
}

func tooMuchMemory(l Limits) limit {
	return limit("killed: it used more than " + describeSize(l.Memory) + " of memory")
}

// pidOf returns the number of a process, given by a descriptor, in our own /proc, and whether it is
// in a namespace below ours, where it has another number.
func pidOf(process *os.File) (pid string, nested bool) {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", process.Fd()))
	_, rest, _ := strings.Cut(string(info), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	numbers := strings.Fields(line)
	if len(numbers) < 2 {
		return "", false
	}
	return numbers[0], true
}

func childProcesses(pid, thread string) (pids []string) {
	list, _ := os.ReadFile("/proc/" + pid + "/task/" + thread + "/children")
	for child := range bytes.FieldsSeq(list) {
		pids = append(pids, string(child))
	}
	return pids
}

// watchFolder limits the data that the command leaves on the disk.
func (p *process) watchFolder(process1, folder string, l Limits) {
	var stat unix.Stat_t
	_ = unix.Stat(folder, &stat)
	p.checkEvery(folderEvery, func() limit {
		reason, err := p.measureFolder(folder, heldOf(process1, uint64(stat.Dev)), l)
		switch {
		case errors.Is(err, errEnded):
			return ""
		case err != nil:
			return "killed: its folder cannot be measured any more"
		case reason == "" && freeBytes(folder) < l.Folder:
			// Files in transit through a socket are in no directory and no process.
			return limit("killed: the server's disk has less than " + describeSize(l.Folder) + " left")
		}
		return reason
	})
}

var errEnded = errors.New("the process has ended")

// measureFolder walks a folder until it exceeds a limit, or the process has ended. used is the data
// that the process holds outside the folder.
func (p *process) measureFolder(folder string, used int64, l Limits) (limit, error) {
	if used > l.Folder {
		return tooMuchDisk(l), nil
	}
	var files int
	linked := make(map[uint64]bool)
	err := walkFolder(folder, func(_ int, _ string, stat *unix.Stat_t) error {
		select {
		case <-p.ended:
			return errEnded
		default:
		}
		if files++; files > l.Files {
			return limit(fmt.Sprintf("killed: it has more than %d files", l.Files))
		}
		if stat.Nlink > 1 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			if linked[stat.Ino] {
				return nil
			}
			linked[stat.Ino] = true
		}
		if used += stat.Blocks * 512; used > l.Folder {
			return tooMuchDisk(l)
		}
		return nil
	})
	if errors.Is(err, errDeep) {
		return limit(fmt.Sprintf("killed: its folders are more than %d deep", maxDepth)), nil
	}
	if reason, ok := errors.AsType[limit](err); ok {
		return reason, nil
	}
	return "", err
}

func tooMuchDisk(l Limits) limit {
	return limit("killed: its files passed " + describeSize(l.Folder) + " in all")
}

// countFiles returns the number of files in a file system.
func countFiles(path string) int {
	var stat unix.Statfs_t
	if unix.Statfs(path, &stat) != nil {
		return 0 // its process has ended
	}
	return int(stat.Files - stat.Ffree)
}

// freeBytes returns the bytes that unprivileged processes may still write to the disk of a folder.
func freeBytes(folder string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(folder, &stat) != nil {
		return 0
	}
	return int64(stat.Bavail) * stat.Bsize
}
