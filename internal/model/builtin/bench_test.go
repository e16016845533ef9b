package builtin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/model/builtin"
)

func TestTallyMeasuresWhenDeltasLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start := time.Now()
		for _, size := range []int{20, 21, 64} {
			s := generate(t.Context(), builtin.New(), user(builtin.Script("").Bench(100, size, 20).String()))
			var tally builtin.Tally
			for i, d := range s.Deltas {
				if len(d) != size {
					t.Fatalf("a delta of %d bytes instead of %d", len(d), size)
				}
				err := tally.Read(d, func(index int, emitted time.Time) {
					if index != i || !emitted.Equal(start.Add(s.At[i])) {
						t.Errorf("delta %d at %v, want %d at %v", index, emitted, i, start.Add(s.At[i]))
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := tally.Whole(100); err != nil {
				t.Error(err)
			}
			start = time.Now()
		}
	})
}

// bench returns the deltas of a short answer.
func bench(t *testing.T, n int) []string {
	return generate(t.Context(), builtin.New(), user(builtin.Script("").Bench(n, 24, 0).String())).Deltas
}

func TestTallyReadsMergedAndCutText(t *testing.T) {
	t.Parallel()
	deltas := bench(t, 50)
	rapid.Check(t, func(r *rapid.T) {
		var tally builtin.Tally
		seen := 0
		for text := strings.Join(deltas, ""); text != ""; {
			n := rapid.IntRange(1, min(len(text), 100)).Draw(r, "piece")
			if err := tally.Read(text[:n], func(int, time.Time) { seen++ }); err != nil {
				r.Fatal(err)
			}
			text = text[n:]
		}
		if err := tally.Whole(50); err != nil || seen != 50 {
			r.Fatalf("%v, %d seen", err, seen)
		}
	})
}

func TestTallyFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	deltas := bench(t, 21)
	beyond := deltas[20]
	deltas = deltas[:20]
	rapid.Check(t, func(r *rapid.T) {
		broken := slices.Clone(deltas)
		i, j := rapid.IntRange(0, 18).Draw(r, "i"), rapid.IntRange(0, 19).Draw(r, "j")
		switch rapid.SampledFrom([]string{"lost", "twice", "swapped", "last lost", "cut", "garbage", "other text", "one for another",
			"more"}).Draw(r, "fault") {
		case "lost":
			broken = slices.Delete(broken, i, i+1)
		case "twice":
			broken = slices.Insert(broken, j, broken[j])
		case "swapped":
			broken[i], broken[i+1] = broken[i+1], broken[i]
		case "last lost":
			broken = broken[:19]
		case "cut":
			broken[19] = broken[19][:10]
		case "garbage":
			broken[j] = strings.Replace(broken[j], "0", "?", 1)
		case "other text":
			broken = slices.Insert(broken, i, "hello\n")
		case "one for another":
			broken = append(slices.Delete(broken, i, i+1), beyond)
		case "more":
			broken = append(broken, beyond[:5])
		}
		var tally builtin.Tally
		err := tally.Read(strings.Join(broken, ""), nil)
		if err == nil {
			err = tally.Whole(20)
		}
		if err == nil {
			r.Fatalf("nothing wrong with %q", broken)
		}
	})
}

func TestInterruptedBenchIsWholeAgain(t *testing.T) {
	t.Parallel()
	req := user(builtin.Script("").Bench(30, 24, 0).String())
	text := generate(t.Context(), builtin.New(), req).text()
	rapid.Check(t, func(r *rapid.T) {
		cut := rapid.IntRange(0, len(text)).Draw(r, "cut")
		again := req
		again.Partial = text[:cut]
		rest := generate(t.Context(), builtin.New(), again).text()
		var tally builtin.Tally
		if err := tally.Read(text[:cut]+rest, nil); err != nil {
			r.Fatal(err)
		}
		if err := tally.Whole(30); err != nil {
			r.Fatal(err)
		}
	})
}
