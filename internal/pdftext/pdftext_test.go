package pdftext_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/pdftext"
	"github.com/parley-server/parley/internal/testing/slow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build returns a PDF with objects, from number 1; the first one is the catalog. trailer has more
// members of the trailer.
func build(trailer string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	at := make([]int, len(objects))
	for i, o := range objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, start)
	return b.Bytes()
}

const (
	catalog   = "<< /Type /Catalog /Pages 2 0 R >>"
	resources = "/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> >> >>"
)

// stream returns a stream.
func stream(members, content string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", members, len(content), content)
}

// pages returns the tree of n pages with the same contents, which are object 3.
func pages(n int, contents string) []string {
	kids, objects := strings.Builder{}, []string{catalog, "", contents}
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", i+4)
		objects = append(objects, "<< /Type /Page /Parent 2 0 R /Contents 3 0 R >>")
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [ %s] %s >>", n, kids.String(), resources)
	return objects
}

// deflateMany compresses n copies of a block, and compresses the block only twice: from the second
// copy on, the compressed bytes are the same. The checksum at the end is missing.
func deflateMany(block []byte, n int) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	add := func() []byte {
		from := b.Len()
		_, _ = w.Write(block)
		_ = w.Flush()
		return b.Bytes()[from:]
	}
	first := string(add())
	return first + strings.Repeat(string(add()), n-1)
}

func extract(t *testing.T, pdf []byte) string {
	t.Helper()
	text, err := pdftext.Extract(t.Context(), pdf)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTextOfPages reads lines, columns, kerned words and a form.
func TestTextOfPages(t *testing.T) {
	t.Parallel()
	contents := stream("",
		"BT /F 12 Tf 72 700 Td (Quarterly report) Tj 0 -20 Td [(Rev) 10 (enue) -400 (4711)] TJ 200 0 Td (euros) Tj ET /X Do")
	objects := pages(2, contents)
	objects[1] = strings.Replace(objects[1], "/Font", "/XObject << /X 6 0 R >> /Font", 1)
	objects = append(objects, stream("/Type /XObject /Subtype /Form", "BT /F 12 Tf 72 100 Td (Gr\xf6\xdfe) Tj ET"))
	page := "Quarterly report\nRevenue 4711 euros\nGröße\n"
	if got, want := extract(t, build("", objects...)), "[page 1]\n"+page+"\n[page 2]\n"+page; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFilesWithoutText reads files that are broken, encrypted, or have only images.
func TestFilesWithoutText(t *testing.T) {
	t.Parallel()
	whole := build("", pages(1, stream("", "BT /F 12 Tf (x) Tj ET"))...)
	encrypt := "/ID [ (0123456789abcdef) (0123456789abcdef) ] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (" + strings.Repeat("o",
		32) + ") /U (" + strings.Repeat("u", 32) + ") >>"
	for want, pdf := range map[string][]byte{
		"encrypted": build(encrypt, pages(1, stream("", "BT /F 12 Tf (x) Tj ET"))...),
		"images":    build("", pages(1, stream("", "q 100 0 0 100 0 0 cm /Im0 Do Q"))...),
		"not a valid PDF, or of a kind that is not supported": whole[:len(whole)/2],
	} {
		if got := extract(t, pdf); !strings.HasPrefix(got, "[The PDF has no text") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", want, got)
		}
	}
	for _, garbage := range []string{"", "%PDF-1.7\n", "%PDF-1.7\n" + strings.Repeat("\x00\xff", 1<<20) + "\nstartxref\n9\n%%EOF\n"} {
		if got := extract(t, []byte(garbage)); !strings.HasPrefix(got, "[The PDF has no text") {
			t.Errorf("%.20q: %q", garbage, got)
		}
	}
}

// TestHostileFilesEnd reads files that make a parser recurse, loop or use memory. Each ends within the
// limits, with a note or with a part of the text.
func TestHostileFilesEnd(t *testing.T) {
	t.Parallel()
	bomb := deflateMany(bytes.Repeat([]byte{0}, 1<<20), 512)
	parens := deflateMany(bytes.Repeat([]byte("("), 1<<20), 512)
	long := deflateMany([]byte(strings.Repeat("BT /F 12 Tf 0 -20 Td (a text that is very long, and repeated) Tj ET\n", 1<<14)), 64)
	for name, pdf := range map[string][]byte{
		"bomb":         build("", pages(1, stream("/Filter /FlateDecode", bomb))...),
		"string bomb":  build("", pages(1, stream("/Filter /FlateDecode", parens))...),
		"nested array": build("", pages(1, stream("", strings.Repeat("[", 5<<20)))...),
		"nested dict":  build("/X "+strings.Repeat("<</A ", 1<<20), pages(1, stream("", ""))...),
		"tree circle":  build("", catalog, "<< /Type /Pages /Count 9 /Kids [ 2 0 R 2 0 R 2 0 R ] >>"),
		"form circle": build("", catalog, "<< /Type /Pages /Count 1 /Kids [ 4 0 R ] /Resources << /XObject << /X 3 0 R >> >> >>",
			stream("/Subtype /Form", strings.Repeat("/X Do ", 100)), "<< /Type /Page /Parent 2 0 R /Contents 3 0 R >>"),
		"length": build("", catalog, "<< /Type /Pages /Count 1 /Kids [ 4 0 R ] >>", "<< /Length 3 0 R >>\nstream\nx\nendstream",
			"<< /Type /Page /Contents 3 0 R >>"),
		"kids": build("", catalog, "<< /Type /Pages /Count 99999999999 /Kids [ "+strings.Repeat("2 0 R ", 100_000)+"] >>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := extract(t, pdf); !strings.HasPrefix(got, "[The PDF has no text") && !strings.HasSuffix(got, "too much time or memory]") {
				t.Errorf("%d bytes of text: %.200q", len(got), got)
			}
		})
	}
	t.Run("long", func(t *testing.T) {
		t.Parallel()
		slow.Test(t, "unpacks 50 MB of drawing operators", "TestHostileFilesEnd")
		if got := extract(t, build("", pages(1, stream("/Filter /FlateDecode", long))...)); len(got) > pdftext.MaxText+200 {
			t.Errorf("%d bytes of text", len(got))
		}
	})
	t.Run("10,000 pages", func(t *testing.T) {
		t.Parallel()
		got := extract(t, build("", pages(10_000, stream("", "BT /F 12 Tf (a page) Tj ET"))...))
		if !strings.HasPrefix(got, "[page 1]\na page\n\n[page 2]\na page\n") ||
			strings.Contains(got, fmt.Sprintf("[page %d]", pdftext.MaxPages+1)) {
			t.Errorf("%d bytes of text: %.200q", len(got), got)
		}
	})
}
