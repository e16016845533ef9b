package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
)

const (
	maxInput   = 1 << 20 // bytes of a call's input
	maxHeaders = 64
	maxShown   = 100 // characters of an address in a summary
)

// input is a call's input.
type input struct {
	Method  string            `json:"method,omitempty" jsonschema:"default: GET"`
	URL     string            `json:"url" jsonschema:"https://…"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"such as {\"Authorization\":\"Bearer ${API_TOKEN}\"}"`
	Body    json.RawMessage   `json:"body,omitempty" jsonschema:"text, or a value to send as JSON"`
	Seconds int               `json:"timeout_seconds,omitempty" jsonschema:"default: 30"`

	body string // bytes to send
	json bool   // it was not given as text
}

func (in input) limit() time.Duration {
	if in.Seconds == 0 {
		return DefaultTime
	}
	return time.Duration(in.Seconds) * time.Second
}

// headerName matches a token of RFC 9110.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

var inputSchema = tool.SchemaOf[input](tool.OneOf("method", methods...), tool.Between("timeout_seconds", 1, MaxTime.Seconds()))

// parseInput parses a call's input. wrong is a sentence for the model.
func parseInput(raw json.RawMessage) (in input, wrong string) {
	if len(raw) > maxInput {
		return in, "The request is too long: it has at most 1 MiB."
	}
	if wrong := tool.Decode(raw, &in); wrong != "" {
		return in, wrong
	}
	switch {
	case in.URL == "":
		return in, `"url" is required: an address like https://api.example.com/v1/items.`
	case in.Seconds < 0 || in.Seconds > int(MaxTime/time.Second):
		return in, `"timeout_seconds" is a whole number from 1 to 120.`
	case len(in.Headers) > maxHeaders:
		return in, fmt.Sprintf("A request has at most %d headers.", maxHeaders)
	}
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	if !slices.Contains(methods, in.Method) {
		return in, fmt.Sprintf(`"method" is one of %s, in capitals.`, strings.Join(methods, ", "))
	}
	for name, value := range in.Headers {
		if !headerName.MatchString(name) || strings.ContainsFunc(value, unicode.IsControl) {
			return in,
				fmt.Sprintf(
					"The header %s is not one that can be sent: its name has only letters, digits and -, and its value "+
						"is one line.", render.Argument(name, maxShown))
		}
		if strings.EqualFold(name, "Host") {
			return in, "The header Host follows from the address; leave it out."
		}
	}
	return in, in.readBody()
}

// readBody converts the body, a text or any other JSON value, to bytes.
func (in *input) readBody() (wrong string) {
	if len(in.Body) == 0 || string(in.Body) == "null" {
		return ""
	}
	if in.Method == http.MethodGet || in.Method == http.MethodHead {
		return in.Method + " requests have no body. Put parameters into the address, or use POST."
	}
	if json.Unmarshal(in.Body, &in.body) == nil {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, in.Body) != nil {
		return `"body" is a text, or what is sent as JSON.`
	}
	in.body, in.json = b.String(), true
	return ""
}
