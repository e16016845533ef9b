package redact_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/parley-server/parley/internal/redact"
)

// values are realistic secrets, and some that every encoding changes.
var values = []string{
	"sk_live_51HxQpfK2eZvKYlo", "correct horse battery", `a"b\c/d<e>f&g'h+i=j?k%l m`, "pässwörd-😀-日本",
	"AKIA/IOSFODNN7+EXAMPLE==", "12345678", `C:\new\table\run`, "%41%42%43%44abcd", "abcdefg&", `\\\\\\\\x`, "&amp;&lt;12345",
}

// spellings returns the forms of a value, by their encoding.
func spellings(value string) map[string]string {
	inJSON := func(s string, escape bool) string {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escape)
		if err := enc.Encode(s); err != nil {
			panic(err)
		}
		text := strings.TrimSuffix(b.String(), "\n")
		return text[1 : len(text)-1]
	}
	every := func(format string) string {
		var b strings.Builder
		for i := range len(value) {
			fmt.Fprintf(&b, format, value[i])
		}
		return b.String()
	}
	var units, references strings.Builder
	for _, u := range utf16.Encode([]rune(value)) {
		fmt.Fprintf(&units, `\u%04x`, u)
	}
	for _, c := range value {
		fmt.Fprintf(&references, "&#x%X;", c)
	}
	lower := func(s string) string { // of the escapes only
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '%' {
				b.WriteString(strings.ToLower(s[i : i+3]))
				i += 2
				continue
			}
			b.WriteByte(s[i])
		}
		return b.String()
	}
	query, path := url.QueryEscape(value), url.PathEscape(value)
	all := map[string]string{
		"plain": value, "query": query, "query, lower": lower(query), "path": path, "path, lower": lower(path),
		"every byte %": every("%%%02X"), "query twice": url.QueryEscape(query),
		"json": inJSON(value, false), "json for html": inJSON(value, true), "json, slashes": strings.ReplaceAll(inJSON(value, false), "/",
			`\/`), "json twice": inJSON(inJSON(value, true), true),
		"json units": units.String(), "json UNITS": strings.ReplaceAll(strings.ToUpper(units.String()), "U", "u"),
		"every byte x": every(`\x%02x`),
		"html":         html.EscapeString(value), "html references": references.String(),
		"html twice": html.EscapeString(html.EscapeString(value)),
		"hex":        hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
	}
	for name, order := range map[string]binary.AppendByteOrder{"utf-16le": binary.LittleEndian, "utf-16be": binary.BigEndian} {
		var text []byte
		for _, u := range utf16.Encode([]rune(value)) {
			text = order.AppendUint16(text, u)
		}
		all[name] = string(text)
	}
	for before := range 7 {
		for _, after := range []string{"", ":", "\n", "more of it"} {
			for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding,
				"raw std": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
				all[fmt.Sprintf("base64 %s +%d %q", name, before, after)] = e.EncodeToString([]byte("user-1:"[:before] + value + after))
			}
		}
	}
	for name, text := range maps.Clone(all) {
		for _, width := range []int{64, 76, 20} {
			for _, newline := range []string{"\n", "\r\n"} {
				if len(text) > width && (strings.HasPrefix(name, "base64") || strings.EqualFold(name, "hex")) {
					all[fmt.Sprintf("%s in lines of %d %q", name, width, newline)] = wrap(text, width, newline)
				}
			}
		}
		if strings.HasPrefix(name, "base64") {
			all[name+", query"] = url.QueryEscape(text)
			all[name+", json"] = inJSON(wrap(text, 20, "\n"), true)
			all[name+`, \u002b`] = strings.NewReplacer("+", `\u002b`, "/", `\/`).Replace(text)
		}
	}
	return all
}

func wrap(text string, width int, newline string) string {
	var lines []string
	for line := range slices.Chunk([]byte(text), width) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, newline)
}

func TestEveryFormIsFound(t *testing.T) {
	t.Parallel()
	for _, value := range values {
		r := redact.New(redact.Secret{Name: "TOKEN", Value: []byte(value)})
		for name, text := range spellings(value) {
			if strings.HasSuffix(name, "twice") && strings.ContainsAny(value, `\&`) && value != values[2] {
				continue // a value that looks escaped itself is found if it is escaped once
			}
			for _, around := range []string{"%s", "before %s after", `{"a":"%s","b":1}`, "a=%s&b=2", "<p>%s</p>", "Basic %s\r\n"} {
				whole := strings.Replace(around, "%s", text, 1)
				got := r.String(whole)
				if !strings.Contains(got, "[secret:TOKEN]") {
					t.Errorf("%s of %q stays in %q", name, value, got)
				}
				// Some base64 may stay: 7 bytes of the user, 10 after, and the ends.
				if left := len(got) - len(whole) + len(text) - len("[secret:TOKEN]"); left > 40 || !strings.HasPrefix(name, "base64") && left > 1 {
					t.Errorf("%s of %q: %q becomes %q", name, value, whole, got)
				}
			}
		}
	}
}

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ==\nq8f7+/Zk1=\n-----END PRIVATE KEY-----\n"

// TestValuesOfSeveralLinesAreFound writes values with every line ending, in every form.
func TestValuesOfSeveralLinesAreFound(t *testing.T) {
	t.Parallel()
	lf := strings.TrimSuffix(pem, "\n")
	crlf := strings.ReplaceAll(pem, "\n", "\r\n")
	for _, stored := range []string{pem, lf, crlf} {
		r := redact.New(redact.Secret{Name: "KEY", Value: []byte(stored)})
		for _, sent := range []string{pem, lf, crlf, strings.TrimSuffix(crlf, "\r\n")} {
			for name, text := range spellings(sent) {
				for _, around := range []string{"%s", "before %s after", `{"a":"%s"}`} {
					whole := strings.Replace(around, "%s", text, 1)
					got := r.String(whole)
					if !strings.Contains(got, "[secret:KEY]") || len(got) > len(around)+60 {
						t.Errorf("%s of %q, stored as %q: %q", name, sent, stored, got)
					}
					if streamed := stream(r, whole, []int{3, 1}); streamed != got {
						t.Errorf("%s as a stream: %q, want %q", name, streamed, got)
					}
				}
			}
		}
	}
}

// TestShortValuesAreFound uses values of 4 to 7 bytes.
func TestShortValuesAreFound(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"4711", "0815x", `a"b&c`, "élan", "123456", "7654321"} {
		r := redact.New(redact.Secret{Name: "PIN", Value: []byte(value)})
		for name, text := range spellings(value) {
			if got := r.String("pin: " + text + "\n"); !strings.Contains(got, "[secret:PIN]") {
				t.Errorf("%s of %q stays in %q", name, value, got)
			}
		}
	}
}

// markings records the calls of a Marker.
type markings struct {
	text  strings.Builder
	marks []int
}

func (m *markings) Write(p []byte) (int, error) { return m.text.Write(p) }

func (m *markings) WriteMark(mark string, length int) error {
	m.marks = append(m.marks, length)
	_, err := m.text.WriteString(mark)
	return err
}

func TestMarkersGetTheLengthOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	r := redact.New(redact.Secret{Name: "TOKEN", Value: []byte("secret&value")})
	var m markings
	w := r.Writer(&m)
	const text = "a secret&value, secret&amp;value and 7365637265742676616c7565 end"
	for i := range text {
		if _, err := w.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var copied markings
	if n, err := io.Copy(&copied, r.Reader(iotest.OneByteReader(strings.NewReader(text)))); err != nil || n != int64(len(r.String(text))) {
		t.Errorf("%d bytes, %v", n, err)
	}
	for _, got := range []*markings{&m, &copied} {
		if got.text.String() != r.String(text) || !slices.Equal(got.marks, []int{12, 16, 24}) {
			t.Errorf("%q, %v", &got.text, got.marks)
		}
	}
}

func TestOtherTextStays(t *testing.T) {
	t.Parallel()
	var secrets []redact.Secret
	for i, v := range values {
		secrets = append(secrets, redact.Secret{Name: fmt.Sprint("S", i), Value: []byte(v)})
	}
	r := redact.New(secrets...)
	for _, text := range []string{
		"", "a", "sk_live_51HxQpfK2eZvKYl", "k_live_51HxQpfK2eZvKYlo", "correct horse\x00 battery", "1234567", "2345678", `{"a":"\u00"}`,
		"100%", "%", `\`, "&", "&amp", "%4", `\u12`,
		"ABCDabc", strings.Repeat("\\", 1000), strings.Repeat("%25", 1000), strings.Repeat("&amp;", 1000), strings.Repeat("1234567", 1000),
		"1234567" + strings.Repeat("\n", 1000) + "8",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%.50q becomes %.50q", text, got)
		}
		if got := stream(r, text, []int{1}); got != text {
			t.Errorf("as a stream, %.50q becomes %.50q", text, got)
		}
	}
	var none *redact.Redactor
	if redact.New(redact.Secret{Name: "EMPTY"}).String("text") != "text" || none.String("text") != "text" ||
		stream(none, "text", []int{1}) != "text" {
		t.Error("without secrets the text changes")
	}
}

func TestSecretsThatOverlap(t *testing.T) {
	t.Parallel()
	r := redact.New(
		redact.Secret{Name: "SHORT", Value: []byte("abcdefgh")}, redact.Secret{Name: "LONG", Value: []byte("abcdefghijkl")},
		redact.Secret{Name: "INNER", Value: []byte("cdefghij")}, redact.Secret{Name: "NEXT", Value: []byte("ijklmnop")},
		redact.Secret{Name: "TWIN", Value: []byte("abcdefgh")},
	)
	for text, want := range map[string]string{
		"abcdefgh": "[secret:SHORT]", "abcdefghijkl": "[secret:LONG]", "abcdefghijk": "[secret:SHORT]k", "abcdefghi": "[secret:SHORT]i",
		"xcdefghij":        "x[secret:INNER]",
		"abcdefghijklmnop": "[secret:LONG]", "abcdefghabcdefgh": "[secret:SHORT][secret:SHORT]", "ababcdefgh": "ab[secret:SHORT]",
		"abcdefgijklmnop": "abcdefg[secret:NEXT]",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	r := redact.New(redact.Secret{Name: "TOKEN", Value: []byte("sk_Live-abCDefGH")})
	h := http.Header{"Location": {"https://x.test/?t=sk_Live-abCDefGH"},
		"Set-Cookie": {"a=1", "b=" + base64.StdEncoding.EncodeToString([]byte("u:sk_Live-abCDefGH"))}, "Server": {"x"}}
	h.Set("X-sk_Live-abCDefGH", "yes")
	h.Set("X-"+hex.EncodeToString([]byte("sk_Live-abCDefGH")), "sk_Live-abCDefGH")
	r.Header(h)
	text := fmt.Sprint(h)
	if strings.Contains(strings.ToLower(text), "abcdefgh") || strings.Contains(strings.ToLower(text),
		hex.EncodeToString([]byte("abCDef"))) || h.Get("Server") != "x" || len(h["Set-Cookie"]) != 2 || h["Set-Cookie"][0] != "a=1" {
		t.Errorf("%s", text)
	}
	if h.Get("Location") != "https://x.test/?t=[secret:TOKEN]" || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("sk_Liv"))) {
		t.Errorf("%s", text)
	}
	(*redact.Redactor)(nil).Header(h)
}
