package redact_test

import (
	"io"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/redact"
)

// BenchmarkMarks reads text that consists only of beginnings of escapes.
func BenchmarkMarks(b *testing.B) {
	r := redact.New(redact.Secret{Name: "S", Value: []byte("p4ssw0rd-of-20-bytes")})
	for name, mark := range map[string]string{"amp": "&", "percent": "%", "backslash": `\`, "entity": "&amp;", "amp and letter": "&a",
		"letters": "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		text := strings.Repeat(mark, (1<<20)/len(mark))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.Copy(io.Discard, r.Reader(strings.NewReader(text))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMarksTakeNoMemory reads text that consists only of beginnings of escapes: none of them may
// cost an allocation.
func TestMarksTakeNoMemory(t *testing.T) {
	const size, most = 1 << 18, 500
	r := redact.New(redact.Secret{Name: "S", Value: []byte("p4ssw0rd-of-20-bytes")})
	for _, mark := range []string{"&", "%"} {
		text := strings.Repeat(mark, size)
		n := testing.AllocsPerRun(1, func() {
			if _, err := io.Copy(io.Discard, r.Reader(strings.NewReader(text))); err != nil {
				t.Error(err)
			}
		})
		if n > most {
			t.Errorf("%d times %q: %.0f allocations", size, mark, n)
		}
	}
}
