package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// frames returns the stream of a turn whose deltas have these numbers.
func frames(numbers ...int) string {
	var b strings.Builder
	for i, n := range numbers {
		fmt.Fprintf(&b, "event: text\nid: %d\ndata: {\"v\":1,\"text\":\"dn6rvz3cq1hs %06d\\n\"}\n\n", i+1, n)
	}
	return b.String()
}

const done = "event: done\nid: 9\ndata: {}\n\n"

// TestTheCheckCanFail reads streams with faults that the check must find.
func TestTheCheckCanFail(t *testing.T) {
	for _, test := range []struct{ name, stream, want string }{
		{"good", frames(0, 1, 2) + done, ""},
		{"one lost", frames(0, 2) + done, "is not delta 1"},
		{"last one lost", frames(0, 1) + done, "2 deltas of 3"},
		{"one twice", frames(0, 1, 1, 2) + done, "is not delta 2"},
		{"two swapped", frames(1, 0, 2) + done, "is not delta 0"},
		{"no done", frames(0, 1, 2), "without done"},
		{"text after done", frames(0, 1, 2) + done + strings.ReplaceAll(frames(3), "id: 1", "id: 10"), "follows done"},
		{"an id that falls", frames(0, 1, 2) + strings.ReplaceAll(done, "9", "3"), "follows 3"},
	} {
		err := (&stream{pace: newPace(3, 0)}).read(strings.NewReader(test.stream), time.Now())
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}
