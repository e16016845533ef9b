package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	memoryEvery = 100 * time.Millisecond
	folderEvery = 250 * time.Millisecond
)

// every calls look until it gives a reason to kill the process, or that has ended. A
// look that takes long is repeated less often.
func (p *process) every(pause time.Duration, look func() limit) {
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
			p.kill(reason)
			return
		}
		timer.Reset(max(pause, 10*time.Since(began)))
	}
}

// watchMemory bounds the memory of all processes together, where the kernel's limit is
// for each of them, and the number of files in memory, whose names no size counts.
func (p *process) watchMemory(process1 string, l Limits) {
	p.every(memoryEvery, func() limit {
		if residents(process1) > l.Memory {
			return limit("killed: it used more than " + size(l.Memory) + " of memory")
		}
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			if names("/proc/"+process1+"/root"+dir) > l.Files {
				return limit(fmt.Sprintf("killed: it has more than %d files in %s", l.Files, dir))
			}
		}
		return ""
	})
}

// pidOf is the number of a process, of which we hold a descriptor, in our own /proc,
// and whether it is in a namespace below ours, where it has another.
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

// residents is the memory that a process and its descendants occupy. What two share
// counts twice.
func residents(pid string) (bytes int64) {
	statm, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0 // it has ended
	}
	if fields := strings.Fields(string(statm)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		bytes = pages * int64(os.Getpagesize())
	}
	threads, _ := os.ReadDir("/proc/" + pid + "/task")
	for _, thread := range threads {
		for _, child := range children(pid, thread.Name()) {
			bytes += residents(child)
		}
	}
	return bytes
}

func children(pid, thread string) (pids []string) {
	list, _ := os.ReadFile("/proc/" + pid + "/task/" + thread + "/children")
	for child := range bytes.FieldsSeq(list) {
		pids = append(pids, string(child))
	}
	return pids
}

// watchFolder bounds what the command leaves on the disk.
func (p *process) watchFolder(folder string, l Limits) {
	p.every(folderEvery, func() limit {
		used, files, err := usage(folder)
		switch {
		case err != nil:
			return "killed: its folder cannot be measured any more"
		case used > l.Folder:
			return limit("killed: its files passed " + size(l.Folder) + " in all")
		case files > l.Files:
			return limit(fmt.Sprintf("killed: it has more than %d files", l.Files))
		case free(folder) < l.Folder:
			// Files that were deleted and are still open are in no directory.
			return limit("killed: the server's disk has less than " + size(l.Folder) + " left")
		}
		return ""
	})
}

// usage measures a folder without following a link out of it.
func usage(folder string) (used int64, files int, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	linked := make(map[uint64]bool)
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err != nil { // it went meanwhile, or only the command may look into it
			if d != nil && d.IsDir() && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		files++
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Nlink > 1 && !d.IsDir() {
			if linked[stat.Ino] {
				return nil
			}
			linked[stat.Ino] = true
		}
		used += stat.Blocks * 512
		return nil
	})
	return used, files, err
}

// names is how many files a file system has.
func names(path string) int {
	var stat unix.Statfs_t
	if unix.Statfs(path, &stat) != nil {
		return 0 // its process has ended
	}
	return int(stat.Files - stat.Ffree)
}

// free is what everybody may still write to the disk of a folder.
func free(folder string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(folder, &stat) != nil {
		return 0
	}
	return int64(stat.Bavail) * stat.Bsize
}
