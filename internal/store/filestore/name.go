package filestore

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the maximum length of a filename, in bytes: the limit of common file systems.
const MaxName = 255

// Name makes an untrusted filename safe to show, to send in a header and to save under on any
// system: it has no folders, no invisible characters or direction marks, and no device name. It is
// never empty, and Name of a Name is itself.
func Name(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || !unicode.IsGraphic(r): // control, format, direction, private, unassigned
			return -1
		case unicode.IsSpace(r) || unicode.Is(unicode.Zs, r):
			return ' '
		case strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		}
		return r
	}, name)
	if name = fitName(trimName(name)); name == "" {
		return "file"
	}
	if stem, _, _ := strings.Cut(name, "."); isDeviceName(strings.TrimSpace(stem)) {
		name = fitName("_" + name)
	}
	return name
}

// trimName removes characters that hide a file, end its name invisibly, or turn the name into an
// option.
func trimName(name string) string { return strings.TrimRight(strings.TrimLeft(name, " .-"), " .") }

// fitName truncates a name to MaxName bytes and keeps its extension, if it has one.
func fitName(name string) string {
	if len(name) <= MaxName {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > 20 {
		ext = ""
	}
	stem := name[:MaxName-len(ext)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return trimName(stem) + ext
}

// isDeviceName reports whether Windows reserves a name for a device, with any extension.
func isDeviceName(stem string) bool {
	switch stem = strings.ToUpper(stem); stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	digit, port := strings.CutPrefix(stem, "COM")
	if !port {
		digit, port = strings.CutPrefix(stem, "LPT")
	}
	return port && utf8.RuneCountInString(digit) == 1 && strings.Contains("0123456789¹²³", digit)
}

// Disposition returns the Content-Disposition header with which a file is downloaded and never
// displayed: as RFC 6266 defines it, in ASCII for old clients and in full for others.
func Disposition(name string) string {
	name = Name(name)
	ascii := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
	var full strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$&+-.^_`|~", c) >= 0:
			full.WriteByte(c)
		default:
			const hex = "0123456789ABCDEF"
			full.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + full.String()
}
