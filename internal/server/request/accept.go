package request

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

// The media types of requests and responses.
const (
	JSONType   = "application/json"
	StreamType = "text/event-stream"
)

// Accepts checks that the caller accepts at least one of the media types of the response.
func Accepts(r *http.Request, types ...string) error {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return nil
	}
	for _, t := range types {
		if acceptQuality(header, t) > 0 {
			return nil
		}
	}
	return fault.New(fault.NotAcceptable, "The answer is %s, which the Accept header does not allow.", strings.Join(types, " or "))
}

// acceptQuality returns the quality of a type in an Accept header; its most precise range counts.
func acceptQuality(header, want string) float64 {
	group, _, _ := strings.Cut(want, "/")
	best, q := 0, 0.0
	for part := range strings.SplitSeq(header, ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		precision := 0
		switch t {
		case want:
			precision = 3
		case group + "/*":
			precision = 2
		case "*/*", "*":
			precision = 1
		}
		if precision <= best {
			continue
		}
		best, q = precision, 1
		if text, ok := params["q"]; ok {
			if n, err := strconv.ParseFloat(text, 64); err == nil {
				q = n
			}
		}
	}
	return q
}
