package filestore_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/parley-server/parley/internal/store/filestore"
)

// archive makes a zip file with these names; the text after a = is the content, verbatim.
func archive(t testing.TB, names ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, n := range names {
		name, content, _ := strings.Cut(n, "=")
		h := &zip.FileHeader{Name: name, Method: zip.Store, UncompressedSize64: uint64(len(content)), CompressedSize64: uint64(len(content))}
		f, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func utf16le(s string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

const (
	docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	odt  = "application/vnd.oasis.opendocument.text"
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	exe  = "MZ\x90\x00\x03\x00\x00\x00\x04\x00"
)

func TestTypesAreSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":         {nil, "text/plain"},
		"text":            {[]byte("Hello, wörld.\n"), "text/plain"},
		"Latin-1":         {[]byte("caf\xe9;1,5\n"), "text/plain"},
		"UTF-16":          {utf16le("Hello"), "text/plain"},
		"HTML":            {[]byte("<!doctype html><p>"), "text/html"},
		"PNG":             {[]byte(png), "image/png"},
		"JPEG":            {[]byte("\xff\xd8\xff\xe0\x00\x10JFIF"), "image/jpeg"},
		"PDF":             {[]byte("%PDF-1.7\n"), "application/pdf"},
		"Word":            {archive(t, "[Content_Types].xml=<x/>", "_rels/.rels=<x/>", "word/document.xml=<x/>"), docx},
		"Word of Google":  {archive(t, "word/numbering.xml=<x/>"), docx},
		"Excel":           {archive(t, "[Content_Types].xml=<x/>", "xl/workbook.xml=<x/>"), xlsx},
		"OpenDocument":    {archive(t, "mimetype="+odt, "META-INF/MANIFEST.MF=x"), odt},
		"a template":      {archive(t, "mimetype="+odt+"-template"), "application/zip"},
		"zip":             {archive(t, "notes.txt=Hello", "deep/er.txt=x"), "application/zip"},
		"an empty zip":    {[]byte("PK\x05\x06" + strings.Repeat("\x00", 18)), "application/octet-stream"},
		"a zip cut short": {archive(t, "notes.txt=Hello")[:20], "application/zip"},
		"a lying zip":     {[]byte("PK\x03\x04" + strings.Repeat("\xff", 40)), "application/zip"},
		"Java":            {archive(t, "META-INF/MANIFEST.MF=x", "a/B.class=x"), "application/java-archive"},
		"Android":         {archive(t, "META-INF/MANIFEST.MF=x", "AndroidManifest.xml=x"), "application/vnd.android.package-archive"},
		"Windows":         {[]byte(exe), "application/x-executable"},
		"the letters MZ":  {[]byte("MZ is the beginning of this text"), "text/plain"},
		"Linux":           {[]byte("\x7fELF\x02\x01\x01\x00"), "application/x-executable"},
		"macOS":           {[]byte("\xcf\xfa\xed\xfe\x07\x00\x00\x01"), "application/x-executable"},
		"a shell script":  {[]byte("#!/bin/sh\nrm -rf /\n"), "text/x-shellscript"},
		"behind a BOM":    {[]byte("\ufeff#!/usr/bin/env python3\n"), "text/x-shellscript"},
		"WebAssembly":     {[]byte("\x00asm\x01\x00\x00\x00"), "application/wasm"},
		"something":       {[]byte{0, 1, 2, 3}, "application/octet-stream"},
	} {
		if got := filestore.Sniff(c.data); got != c.want {
			t.Errorf("%s looks like %s, want %s", name, got, c.want)
		}
	}
}

func TestBytesMustBeWhatWasDeclared(t *testing.T) {
	t.Parallel()
	const restricted, unrestricted = false, true
	for _, c := range []struct {
		declared, looks string
		unrestricted    bool
		taken           bool
	}{
		{"text/csv", "text/plain", restricted, true},
		{"application/json", "text/plain", restricted, true},
		{"text/xml", "text/xml", restricted, true},
		{"text/markdown", "text/html", restricted, true},
		{"text/plain", "text/html", restricted, false},
		{"text/plain", "image/png", restricted, false},
		{"text/plain", "application/octet-stream", restricted, false},
		{"image/png", "image/png", restricted, true},
		{"image/png", "image/jpeg", restricted, false},
		{"image/png", "text/html", restricted, false},
		{"application/pdf", "text/plain", restricted, false},
		{docx, docx, restricted, true},
		{docx, "application/zip", restricted, false},
		{docx, xlsx, restricted, false},
		{"application/zip", "application/zip", restricted, false},
		{"text/html", "text/html", restricted, false},
		{"image/svg+xml", "text/xml", restricted, false},
		{"audio/mpeg", "audio/mpeg", restricted, false},
		{"application/zip", "application/zip", unrestricted, true},
		{"application/zip", docx, unrestricted, true},
		{"application/zip", "text/plain", unrestricted, false},
		{"text/html", "text/html", unrestricted, true},
		{"image/svg+xml", "text/xml", unrestricted, true},
		{"image/svg+xml", "image/png", unrestricted, false},
		{"application/x-blend", "application/octet-stream", unrestricted, true},
		{"application/octet-stream", "image/png", unrestricted, true},
		{"image/png", "text/plain", unrestricted, false},
		{"application/octet-stream", "application/x-executable", unrestricted, false},
		{"text/plain", "text/x-shellscript", unrestricted, false},
		{"application/zip", "application/java-archive", unrestricted, false},
	} {
		if why := filestore.Verdict(c.declared, c.looks, c.unrestricted); (why == "") != c.taken {
			t.Errorf("%s that looks like %s, unrestricted %v: %q", c.declared, c.looks, c.unrestricted, why)
		}
	}
}

func TestTypeOfANamedFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, content, want string }{
		{"report.csv", "a,b\n", "text/csv"},
		{"NOTES.MD", "<!-- hello -->", "text/markdown"},
		{"data.json", "{}", "application/json"},
		{"conf.yml", "a: 1", "application/yaml"},
		{"page.html", "<html>", "text/html"},
		{"logo.svg", `<?xml version="1.0"?><svg/>`, "image/svg+xml"},
		{"photo.txt", png, "image/png"},
		{"report.csv", png, "image/png"},
		{"README", "Hello", "text/plain"},
		{"blob.bin", "\x00\x01", "application/octet-stream"},
	} {
		if got := filestore.Type(c.name, []byte(c.content)); got != c.want {
			t.Errorf("%s with %.10q is %s, want %s", c.name, c.content, got, c.want)
		}
	}
}
