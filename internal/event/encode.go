package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/text"
)

// OutputLimit is the number of characters of a tool's output that a stream shows.
const OutputLimit = 4000

// Encode returns the bytes that are stored and sent: compact JSON on one line, with "v" first for
// public kinds. It replaces NUL and broken UTF-8, which PostgreSQL would reject, with U+FFFD, and
// escapes characters that end a line in some languages but not in event streams.
func Encode(b Body) ([]byte, error) {
	switch t := b.(type) {
	case Text:
		return appendText(nil, t.Text), nil
	case Reasoning:
		return appendText(nil, t.Text), nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("encode %s event: %w", b.Kind(), err)
	}
	data := OneLine(clean(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))))
	if k := b.Kind(); !k.Public() || k == KindOpen {
		return data, nil
	}
	out := make([]byte, 0, len(data)+8)
	out = append(out, `{"v":`...)
	out = strconv.AppendInt(out, Version, 10)
	if len(data) > 2 {
		out = append(out, ',')
	}
	return append(out, data[1:]...), nil
}

// Decode is the reverse of Encode for the kinds that the service reads. Unknown kinds, written by a
// newer release, decode to nil without an error.
func Decode(k Kind, data []byte) (Body, error) {
	switch k {
	case KindOpen:
		return decode[Open](data)
	case KindText:
		return decode[Text](data)
	case KindReasoning:
		return decode[Reasoning](data)
	case KindResponse:
		return decode[ModelResponse](data)
	case KindToolUse:
		return decode[ToolUse](data)
	case KindToolResult:
		return decode[ToolResult](data)
	case KindInputRequired:
		return decode[InputRequired](data)
	case KindToolRequired:
		return decode[ToolRequired](data)
	case KindConnect:
		return decode[ConnectRequired](data)
	case KindUsage:
		return decode[Usage](data)
	case KindStructured:
		return decode[Structured](data)
	case KindAttachment:
		return decode[Attachment](data)
	case KindRejected:
		return decode[AttachmentRejected](data)
	case KindError:
		return decode[Error](data)
	case KindDone:
		return decode[Done](data)
	case KindMessage:
		return decode[Message](data)
	case KindSupplied:
		return decode[Supplied](data)
	case KindStarted:
		return decode[Started](data)
	case KindReply:
		return decode[Reply](data)
	case KindToolOutput:
		return decode[ToolOutput](data)
	case KindReference:
		return decode[Reference](data)
	case KindDecision:
		return decode[Decision](data)
	case KindToolLater:
		return decode[ToolLater](data)
	case KindToolReply:
		return decode[ToolReply](data)
	case KindFallback:
		return decode[ModelFallback](data)
	case KindCompacted:
		return decode[Compacted](data)
	case KindToolAgain:
		return decode[ToolAgain](data)
	case KindVerdict:
		return decode[ToolVerdict](data)
	case KindFeedback:
		return decode[Feedback](data)
	}
	return nil, nil
}

func decode[B Body](data []byte) (Body, error) {
	var b B
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("decode %s event: %w", b.Kind(), err)
	}
	return b, nil
}

// Body decodes the event's data.
func (e Event) Body() (Body, error) { return Decode(e.Kind, e.Data) }

// MergeText joins the data of adjacent deltas of a kind into the data of one. Like the built-in append
// it may write into the memory of a.
func MergeText(a, b []byte) []byte {
	const prefix = len(`{"v":1,"text":"`)
	return append(a[:len(a)-len(`"}`)], b[prefix:]...)
}

// appendText is Encode for the deltas, which are written thousands of times a second. MergeText depends
// on its exact format.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, `{"v":1,"text":"`...)
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c == '\n':
			dst = append(dst, `\n`...)
			i++
		case c == '\r':
			dst = append(dst, `\r`...)
			i++
		case c == '\t':
			dst = append(dst, `\t`...)
			i++
		case c == 0:
			dst = append(dst, replacement...)
			i++
		case c < 0x20:
			dst = append(dst, fmt.Sprintf(`\u%04x`, c)...)
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				dst = append(dst, replacement...)
			case strings.ContainsRune(lineEnds, r):
				dst = append(dst, fmt.Sprintf(`\u%04x`, r)...)
			default:
				dst = append(dst, s[i:i+n]...)
			}
			i += n
		}
	}
	return append(dst, `"}`...)
}

const replacement = "\uFFFD"

// lineEnds are characters at which Python's str.splitlines, and parsers made with it, end a line.
const lineEnds = "\u0085\u2028\u2029"

// OneLine escapes lineEnds in JSON, so that every parser sees one line.
func OneLine(data []byte) []byte {
	for _, r := range lineEnds {
		if raw := []byte(string(r)); bytes.Contains(data, raw) {
			data = bytes.ReplaceAll(data, raw, fmt.Appendf(nil, `\u%04x`, r))
		}
	}
	return data
}

// clean replaces the escapes that are valid JSON but that a PostgreSQL text cannot contain: \u0000
// and lone surrogates. encoding/json writes the first for NUL; raw JSON from other sources can
// contain both.
func clean(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			i++
			continue
		}
		if data[i+1] != 'u' {
			out = append(out, data[i], data[i+1])
			i += 2
			continue
		}
		r, ok := hex4(data, i)
		switch low, paired := hex4(data, i+6); {
		case !ok:
			out = append(out, data[i], data[i+1])
			i += 2
		case r == 0 || r >= 0xdc00 && r < 0xe000:
			out = append(out, replacement...)
			i += 6
		case r >= 0xd800 && r < 0xdc00 && paired && low >= 0xdc00 && low < 0xe000:
			out = append(out, data[i:i+12]...)
			i += 12
		case r >= 0xd800 && r < 0xdc00:
			out = append(out, replacement...)
			i += 6
		default:
			out = append(out, data[i:i+6]...)
			i += 6
		}
	}
	return out
}

// hex4 parses the code unit of an escape \uXXXX at data[i:].
func hex4(data []byte, i int) (rune, bool) {
	if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
	return rune(n), err == nil
}

// CutOutput shortens a tool's output to OutputLimit characters (runes).
func CutOutput(s string) (cut string, truncated bool) {
	cut = text.Prefix(s, OutputLimit)
	return cut, len(cut) < len(s)
}

// Plain replaces NUL and broken UTF-8, which PostgreSQL's text cannot contain.
func Plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}
