package filestore_test

import (
	"mime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/store/filestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHostileNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300)
	for given, want := range map[string]string{
		"report.csv":                    "report.csv",
		"Jahresbericht 2026.pdf":        "Jahresbericht 2026.pdf",
		"../../etc/passwd":              "passwd",
		`C:\x`:                          "x",
		`C:x`:                           "C_x",
		`\\host\share\a.txt`:            "a.txt",
		"a\x00b":                        "ab",
		"CON":                           "_CON",
		"con.txt":                       "_con.txt",
		"Lpt1 .txt":                     "_Lpt1 .txt",
		"COM¹":                          "_COM¹",
		"console.txt":                   "console.txt",
		".":                             "file",
		"..":                            "file",
		"...":                           "file",
		"":                              "file",
		" ":                             "file",
		"a/":                            "file",
		".bashrc":                       "bashrc",
		"-rf":                           "rf",
		"name. . .":                     "name",
		"invoice\u202efdp.exe":          "invoicefdp.exe",
		"zero\u200bwidth\ufeff":         "zerowidth",
		".\u200b.":                      "file",
		`"; filename*=x`:                "_; filename_=x",
		"a\r\nSet-Cookie: x":            "aSet-Cookie_ x",
		"a\u2028b\u2029c":               "abc",
		"broken\xff\xfename":            "brokenname",
		"日本語.txt":                       "日本語.txt",
		"tab\tand\u00a0no-break":        "taband no-break",
		"<script>alert(1).txt":          "_script_alert(1).txt",
		long + ".txt":                   strings.Repeat("é", 125) + ".txt",
		strings.Repeat("x", 300):        strings.Repeat("x", 255),
		"a." + strings.Repeat("b", 300): "a." + strings.Repeat("b", 253),
	} {
		if got := filestore.Name(given); got != want {
			t.Errorf("Name(%.40q) = %q, want %q", given, got, want)
		}
	}
}

// FuzzName checks promise F8 for names: every input gives a name that is safe to show, to send and
// to save under.
func FuzzName(f *testing.F) {
	for _, s := range []string{"report.csv", "../../etc/passwd", `C:\x`, "a\x00b", "CON", ".", "x\u202ey", `"; filename*=`, "a\r\nb",
		"日本語.txt", strings.Repeat("é", 300) + ".csv", "%41", `a\"b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, given string) {
		name := filestore.Name(given)
		switch {
		case name == "" || name == "." || name == ".." || len(name) > filestore.MaxName:
			t.Errorf("%q became %q", given, name)
		case !utf8.ValidString(name) || strings.ContainsAny(name, "/\\<>:\"|?*\r\n\x00") || strings.ContainsFunc(name, unicode.IsControl):
			t.Errorf("%q became %q", given, name)
		case strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Cf, r) }):
			t.Errorf("%q became %q, which has invisible characters", given, name)
		case filestore.Name(name) != name:
			t.Errorf("%q became %q, and that %q", given, name, filestore.Name(name))
		}
		header := filestore.Disposition(given)
		if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("header %q", header)
		}
		disposition, params, err := mime.ParseMediaType(header)
		if err != nil || disposition != "attachment" || params["filename"] != name || len(params) != 1 {
			t.Errorf("%q: header %q is read as %s %v, %v", given, header, disposition, params, err)
		}
	})
}
