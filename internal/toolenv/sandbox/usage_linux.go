package sandbox

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// passesMemory says whether a process and its descendants keep more than a number of bytes. It
// counts the pages of files, such as libraries, by process and then, if that is too much, once.
func passesMemory(pid string, limit int64) bool {
	return memoryOf(pid, rssFile) > limit && memoryOf(pid, pssFile) > limit
}

// memoryOf returns the memory that a process and its descendants keep, as far as another process
// can see it: resident pages, page tables, shared memory, mapped or not, and as much as their
// sockets may hold. ofFiles returns the pages of files that a process has mapped.
func memoryOf(pid string, ofFiles func(pid, status string) int64) (bytes int64) {
	shared := make(map[file]int64)
	for _, p := range descendants(pid) {
		text, _ := os.ReadFile("/proc/" + p + "/status")
		status := string(text)
		for _, name := range []string{"RssAnon", "VmPTE", "VmSwap"} {
			size, _ := sizeIn(status, name)
			bytes += size
		}
		bytes += ofFiles(p, status)
		eachDeleted(p, func(f file, path string, end int64) {
			if path == "/dev/zero" || path == "/anon_hugepage" {
				shared[f] = max(shared[f], end)
			}
		})
	}
	for _, size := range shared {
		bytes += size
	}
	return bytes + socketsOf(pid)
}

// rssFile counts a page once for each process that has it mapped.
func rssFile(_, status string) int64 {
	size, _ := sizeIn(status, "RssFile")
	return size
}

// pssFile divides the size of a page by the number of processes that have it mapped. A process can
// hide this figure; then each of its pages counts.
func pssFile(pid, status string) int64 {
	text, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if size, ok := sizeIn(string(text), "Pss_File"); ok {
		return size
	}
	return rssFile(pid, status)
}

// sizeIn returns a size in bytes from a text with lines such as "RssFile:    1024 kB".
func sizeIn(text, name string) (bytes int64, ok bool) {
	_, rest, ok := strings.Cut("\n"+text, "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(line), " kB"), 10, 64)
	return kib << 10, ok && err == nil
}

// file identifies a file that processes hold in any way.
type file struct{ dev, inode uint64 }

// eachDeleted calls see for every mapping of a file that no directory contains, with the position
// in the file at which the mapping ends.
func eachDeleted(pid string, see func(f file, path string, end int64)) {
	maps, _ := os.ReadFile("/proc/" + pid + "/maps")
	for line := range strings.Lines(string(maps)) {
		rest, deleted := strings.CutSuffix(line, " (deleted)\n")
		fields := strings.Fields(rest) // range, rights, offset, device, inode, path
		if !deleted || len(fields) < 6 {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		major, minor, _ := strings.Cut(fields[3], ":")
		hex := func(s string) uint64 {
			n, _ := strconv.ParseUint(s, 16, 64)
			return n
		}
		inode, _ := strconv.ParseUint(fields[4], 10, 64)
		f := file{unix.Mkdev(uint32(hex(major)), uint32(hex(minor))), inode}
		see(f, fields[5], int64(hex(fields[2])+hex(to)-hex(from)))
	}
}

// socketsOf returns the maximum data that the sockets in a process's network may hold: the send
// limit of each socket, which is all that the kernel reports for pairs, and the queued data of TCP
// sockets.
func socketsOf(pid string) (bytes int64) {
	sockets, _ := os.ReadFile("/proc/" + pid + "/net/sockstat")
	line, _, _ := strings.Cut(string(sockets), "\n")
	used, _ := strconv.ParseInt(strings.TrimPrefix(line, "sockets: used "), 10, 64)
	bytes = used * socketBuffer()
	for _, protocol := range []string{"tcp", "tcp6"} {
		table, _ := os.ReadFile("/proc/" + pid + "/net/" + protocol)
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); len(fields) > 4 {
				sent, received, _ := strings.Cut(fields[4], ":")
				for _, queue := range []string{sent, received} {
					n, _ := strconv.ParseInt(queue, 16, 64)
					bytes += n
				}
			}
		}
	}
	return bytes
}

// socketBuffer is the maximum send buffer that a program can set for a socket.
var socketBuffer = sync.OnceValue(func() int64 {
	text, _ := os.ReadFile("/proc/sys/net/core/wmem_max")
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		n = 208 << 10
	}
	return 2 * n // the kernel doubles the requested size
})

// heldOf returns the disk space of files on a device that a process and its descendants hold and
// that no directory contains.
func heldOf(pid string, dev uint64) (bytes int64) {
	held := make(map[uint64]int64) // by inode
	for _, p := range descendants(pid) {
		threads, _ := os.ReadDir("/proc/" + p + "/task")
		for _, thread := range threads { // each may have its own files
			fds := "/proc/" + p + "/task/" + thread.Name() + "/fd/"
			list, _ := os.ReadDir(fds)
			for _, fd := range list {
				var stat unix.Stat_t
				if unix.Stat(fds+fd.Name(), &stat) == nil && stat.Nlink == 0 && uint64(stat.Dev) == dev {
					held[stat.Ino] = stat.Blocks * 512
				}
			}
		}
		eachDeleted(p, func(f file, _ string, end int64) {
			if f.dev == dev {
				held[f.inode] = max(held[f.inode], end)
			}
		})
	}
	for _, size := range held {
		bytes += size
	}
	return bytes
}
