package workdir

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Refusal is the reason why a folder is not saved: a sentence for the agent, with the remedy. The
// previous save stays.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

func newRefusal(format string, a ...any) error {
	return &Refusal{fmt.Sprintf("The files in /workspace are not saved: "+format, a...)}
}

// tooMany rejects a folder with more names than the limit.
func tooMany(most int) error {
	return newRefusal("there are more than %d files and folders, and that is the most. Remove what is not needed "+
		"(du --inodes shows where they are), or put many small files into one archive.", most)
}

// tooLarge rejects files that exceed the limit of one file.
func tooLarge(files []sized) error {
	return newRefusal("a file has at most %s. Remove, or split into parts: %s.", describeSize(MaxFile), namesOf(files))
}

// tooMuch rejects files that together exceed the limit.
func tooMuch(bytes, most int64, largest []sized) error {
	return newRefusal("together they have %s, and %s is the most. Remove what is not needed. The largest: %s.", describeSize(bytes),
		describeSize(most), namesOf(largest))
}

// storageFull rejects a folder that exceeds the storage quota of its workspace.
func storageFull(why string) error {
	return newRefusal(
		"the workspace's storage is full. %s Remove here what is not needed, or ask an administrator to erase old sessions or for a "+
			"larger quota.", why)
}

// tooFar rejects a path that is too long or too deep.
func tooFar(path string) error {
	return newRefusal("a path has at most %d bytes and %d folders, and there is a longer one: %s. Move or remove it.", MaxPath, MaxDepth,
		quotePath(path))
}

// sized is a file and its size.
type sized struct {
	path string
	size int64
}

// keepLargest keeps the few largest files, the largest first.
func keepLargest(list []sized, f sized) []sized {
	at, _ := slices.BinarySearchFunc(list, f, func(a, b sized) int { return cmp.Compare(b.size, a.size) })
	list = slices.Insert(list, at, f)
	return list[:min(len(list), 3)]
}

func namesOf(files []sized) string {
	words := make([]string, len(files))
	for i, f := range files {
		words[i] = quotePath(f.path) + " (" + describeSize(f.size) + ")"
	}
	return strings.Join(words, ", ")
}

// quotePath quotes a path for a sentence, because it can contain any bytes.
func quotePath(path string) string {
	if len(path) > 100 {
		path = path[:60] + "…" + path[len(path)-37:]
	}
	return strconv.Quote(path)
}

// describeSize formats a number of bytes, rounded up, so that a value over a limit looks so.
func describeSize(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	return strconv.FormatFloat(math.Ceil(float64(n)/(1<<20)*10)/10, 'f', -1, 64) + " MiB"
}
