package filestore

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is how long a filename may be, in bytes: as long as file systems take.
const MaxName = 255

// Name makes a filename that a stranger chose fit to be shown, to stand in a header
// and to be saved under on any system: it has no folders, nothing that is invisible
// or turns text around, and none of the names that mean a device. It is never
// empty, and Name of a Name is itself.
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
	if name = fit(trim(name)); name == "" {
		return "file"
	}
	if stem, _, _ := strings.Cut(name, "."); device(strings.TrimSpace(stem)) {
		name = fit("_" + name)
	}
	return name
}

// trim removes what hides a file, ends its name unseen, or makes an option of it.
func trim(name string) string { return strings.TrimRight(strings.TrimLeft(name, " .-"), " .") }

// fit cuts a name to MaxName bytes and keeps its extension, if that is one.
func fit(name string) string {
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
	return trim(stem) + ext
}

// device reports whether Windows reserves a name for a device, with any extension.
func device(stem string) bool {
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

// Disposition is the Content-Disposition header under which a file is downloaded,
// never shown: as RFC 6266 has it, for old clients in ASCII and for others in full.
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
