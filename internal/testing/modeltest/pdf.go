package modeltest

import (
	"bytes"
	"compress/zlib"
	"fmt"
)

// PDF returns a PDF with one page, which draws contents. Its font is F.
func PDF(contents string) []byte { return newPDF("", contents) }

// CompressedPDF is PDF with compressed contents.
func CompressedPDF(contents string) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(contents)) // a buffer takes everything
	_ = w.Close()
	return newPDF("/Filter /FlateDecode ", b.String())
}

func newPDF(filter, contents string) []byte {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [ 3 0 R ] /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica " +
			"/Encoding /WinAnsiEncoding >> >> >> >>",
		"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>", fmt.Sprintf("<< %s/Length %d >>\nstream\n%s\nendstream", filter,
			len(contents), contents)}
	out, table := "%PDF-1.7\n", ""
	for i, o := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(out))
		out += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	return fmt.Appendf(nil, "%sxref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %[2]d /Root 1 0 R >>\nstartxref\n%[4]d\n%%%%EOF\n", out,
		len(objects)+1, table, len(out))
}
