package redact_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/redact"
)

// stream redacts a text in chunks of these sizes, repeated.
func stream(r *redact.Redactor, text string, sizes []int) string {
	var out bytes.Buffer
	w := r.Writer(&out)
	for i := 0; text != ""; i++ {
		n := min(sizes[i%len(sizes)], len(text))
		if _, err := io.WriteString(w, text[:n]); err != nil {
			panic(err)
		}
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

// TestStreamsFindTheSame writes secrets that share their parts, in every form, in chunks of any
// size.
func TestStreamsFindTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune(`ab+/ %&\"é<;u0`)), 4, 9, -1)
		var secrets []redact.Secret
		var parts []string
		for i := range rapid.IntRange(1, 4).Draw(t, "secrets") {
			value := rapid.OneOf(rapid.Just("abababab"), rapid.Map(rapid.SliceOfN(part, 2, 3), func(p []string) string {
				return strings.Join(p, "")
			})).Draw(t, "value")
			secrets = append(secrets, redact.Secret{Name: fmt.Sprint(i), Value: []byte(value)})
			parts = append(parts, value[:len(value)/2], value[len(value)/2:])
			for _, form := range spellings(value) {
				parts = append(parts, form)
			}
		}
		r := redact.New(secrets...)
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(parts), part,
			rapid.SampledFrom([]string{"\n", "\\", "%", "&", "%25", `\u00`})), 0, 9).Draw(t, "text"), "")
		want := r.String(text)
		if got := stream(r, text, rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(t, "sizes")); got != want {
			t.Fatalf("a writer returns %q for %q, want %q", got, text, want)
		}
		if err := iotest.TestReader(r.Reader(iotest.OneByteReader(strings.NewReader(text))), []byte(want)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStreamsGiveWhatIsCertain checks that bytes are written as soon as they cannot be part of a
// secret.
func TestStreamsGiveWhatIsCertain(t *testing.T) {
	t.Parallel()
	r := redact.New(redact.Secret{Name: "TOKEN", Value: []byte("secretvalue")})
	var out bytes.Buffer
	w := r.Writer(&out)
	for _, step := range []struct{ in, out string }{
		{"data: 1\n\n", "data: 1\n\n"}, {"data: sec", "data: "}, {"urity\n", "security\n"}, {"secretval", ""}, {"ue", "[secret:TOKEN]"},
		{"%7", ""}, {"g", "%7g"}, {`\u00`, ""}, {"", ""},
	} {
		out.Reset()
		if _, err := io.WriteString(w, step.in); err != nil || out.String() != step.out {
			t.Errorf("%q returns %q, %v", step.in, &out, err)
		}
	}
	out.Reset()
	if err := w.Close(); err != nil || out.String() != `\u00` {
		t.Errorf("the end returns %q, %v", &out, err)
	}
}

func TestStreamsPassErrors(t *testing.T) {
	t.Parallel()
	r := redact.New(redact.Secret{Name: "TOKEN", Value: []byte("secretvalue")})
	broken := errors.New("broken")
	got, err := io.ReadAll(r.Reader(io.MultiReader(strings.NewReader("a secretvalue and sec"), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) || string(got) != "a [secret:TOKEN] and sec" {
		t.Errorf("%q, %v", got, err)
	}
	w := r.Writer(failing{})
	if _, err := io.WriteString(w, "some text"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
