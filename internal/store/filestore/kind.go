package filestore

import (
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

const (
	plainText  = "text/plain"
	htmlText   = "text/html"
	xmlText    = "text/xml"
	svgImage   = "image/svg+xml"
	zipArchive = "application/zip"
	unknown    = "application/octet-stream"
	program    = "application/x-executable"
	script     = "text/x-shellscript"
	jar        = "application/java-archive"
	apk        = "application/vnd.android.package-archive"
)

// allowed are the types that a key without files:write:unrestricted may send, with their
// extensions. Text is any of its many forms; it is never run.
var allowed = []struct{ mime, ext string }{
	{plainText, "txt"},
	{"text/csv", "csv"},
	{"text/tab-separated-values", "tsv"},
	{"text/markdown", "md"},
	{"text/calendar", "ics"},
	{xmlText, "xml"},
	{"application/xml", ""},
	{"application/json", "json"},
	{"application/x-ndjson", "ndjson"},
	{"application/yaml", "yaml"},
	{"image/png", "png"},
	{"image/jpeg", "jpg"},
	{"image/gif", "gif"},
	{"image/webp", "webp"},
	{"application/pdf", "pdf"},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"},
	{"application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"},
	{"application/vnd.oasis.opendocument.text", "odt"},
	{"application/vnd.oasis.opendocument.spreadsheet", "ods"},
	{"application/vnd.oasis.opendocument.presentation", "odp"},
}

// pages are types that a browser would run from a disk: even under another declared type they are
// not on the list above.
var pages = []string{"html", "htm", "xhtml", "xht", "shtml", "mhtml", "mht", "svg", "svgz", "xsl", "xslt"}

// denied are types that are always rejected: a system runs them when they are opened.
var denied = []string{
	program, script, jar, apk,
	"application/x-msdownload", "application/x-msdos-program", "application/x-dosexec", "application/vnd.microsoft.portable-executable",
	"application/x-sharedlib", "application/x-mach-binary", "application/x-elf", "application/x-msi", "application/x-ms-installer",
	"application/x-ms-shortcut", "application/hta", "application/x-sh", "application/x-shellscript", "application/x-csh", "application/x-bat",
	"application/x-powershell", "text/vbscript", "application/wasm", "application/vnd.debian.binary-package", "application/x-debian-package",
	"application/x-rpm", "application/x-redhat-package-manager", "application/x-apple-diskimage", "application/x-java-archive",
}

// deniedEndings are the extensions of these types.
var deniedEndings = []string{
	"exe", "com", "scr", "pif", "cpl", "dll", "sys", "ocx", "msi", "msp", "msix", "appx", "bat", "cmd", "ps1", "psm1", "vbs", "vbe",
	"jse", "ws",
	"wsf", "wsh", "hta", "lnk", "scf", "reg", "url", "jar", "apk", "dmg", "pkg", "deb", "rpm", "appimage", "sh", "bash", "zsh", "csh", "ksh",
	"command", "desktop", "wasm",
}

// Allowed returns the types that do not require files:write:unrestricted.
func Allowed() []string {
	list := make([]string, len(allowed))
	for i, a := range allowed {
		list[i] = a.mime
	}
	return list
}

// Type guesses a file's media type by its name and its beginning.
func Type(name string, head []byte) string {
	sniffed := sniffType(head)
	ext := fileExtension(name)
	switch sniffed {
	case plainText, xmlText, htmlText:
		if ext == "svg" && sniffed != htmlText {
			return svgImage
		}
		for _, a := range allowed {
			if a.ext != "" && (ext == a.ext || ext == "yml" && a.ext == "yaml") && isText(a.mime) && isCompatible(a.mime, sniffed) {
				return a.mime
			}
		}
	}
	return sniffed
}

// fileExtension returns a name's extension, without the dot and in lower case.
func fileExtension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// normalizeType returns a declared type without parameters, or "" if it is not a media type.
func normalizeType(declared string) string {
	t, _, err := mime.ParseMediaType(declared)
	if err != nil || strings.Count(t, "/") != 1 || len(t) > 127 || strings.Contains(t, "*") {
		return ""
	}
	switch t {
	case "image/jpg":
		return "image/jpeg"
	case "text/x-markdown":
		return "text/markdown"
	case "text/yaml", "text/x-yaml", "application/x-yaml":
		return "application/yaml"
	case "application/x-zip-compressed":
		return zipArchive
	}
	return t
}

// checkPermitted rejects a declared type, or a name, that may not be sent: with
// UNSUPPORTED_FILE_TYPE, before any byte is sent.
func checkPermitted(name, declared string, unrestricted bool) error {
	ext := fileExtension(name)
	refuse := func(param, format string, args ...any) error {
		f := fault.New(fault.UnsupportedFileType, format, args...)
		f.Param = param
		return f
	}
	switch {
	case slices.Contains(deniedEndings, ext):
		return refuse("filename", "A file that ends in .%s is not accepted, because a system could execute it. Send another type of file.", ext)
	case slices.Contains(denied, declared):
		return refuse("mime", "A file of the type %s is not accepted, because a system could execute it. Send another type of file.", declared)
	case unrestricted || declared == "":
		return nil
	case slices.Contains(pages, ext):
		return refuse("filename", "Files that end in .%s need a key with the scope files:write:unrestricted.", ext)
	case !slices.Contains(Allowed(), declared):
		return refuse("mime", "Files of the type %s need a key with the scope files:write:unrestricted. Without it these are taken: %s.",
			declared, strings.Join(Allowed(), ", "))
	}
	return nil
}

// judgeContent returns why the bytes of a file are rejected, or "". They must match the declared
// type as far as it can be detected, and must not be of a denied type.
func judgeContent(declared, sniffed string, unrestricted bool) string {
	switch {
	case slices.Contains(denied, sniffed):
		return "The file is a program or a script, which a system would run."
	case !unrestricted && !slices.Contains(Allowed(), declared):
		return "The file is " + declared + ", which needs a key with the scope files:write:unrestricted."
	case !isCompatible(declared, sniffed):
		return "The file is declared as " + declared + ", but looks like " + sniffed + "."
	}
	return ""
}

// isCompatible reports whether bytes that look like one type can be of another.
func isCompatible(declared, sniffed string) bool {
	if declared == sniffed {
		return true
	}
	switch {
	case declared == "text/markdown" || declared == htmlText: // Markdown may begin with a tag
		return sniffed == plainText || sniffed == xmlText || sniffed == htmlText
	case isText(declared) || declared == svgImage:
		return sniffed == plainText || sniffed == xmlText
	case declared == zipArchive:
		return strings.HasPrefix(sniffed, "application/vnd.")
	}
	return !seen[declared]
}

// isText reports whether a type is one of the forms of text.
func isText(t string) bool {
	switch t {
	case "application/xml", "application/json", "application/x-ndjson", "application/yaml":
		return true
	}
	return strings.HasPrefix(t, "text/")
}

// seen are the types that sniffType always recognises: a file declared as one of these types that
// does not look like it is rejected.
var seen = func() map[string]bool {
	m := map[string]bool{
		zipArchive: true, "image/bmp": true, "image/x-icon": true, "application/x-gzip": true, "application/gzip": true,
		"application/postscript": true, "video/webm": true, "font/woff": true, "font/woff2": true,
	}
	for _, a := range allowed {
		m[a.mime] = !isText(a.mime)
	}
	return m
}()
