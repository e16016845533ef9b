package request

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
)

// The limits of a body.
const (
	MaxBody = 1 << 20 // bytes of a JSON body
	// MaxChat is MaxBody for a client that sends its whole conversation with every message.
	MaxChat = 8 << 20
	// BodyTime is the maximum time in which a body must arrive.
	BodyTime = 30 * time.Second
)

// ReadBody parses a request's JSON object into its members, without those that are null; raw is the
// unchanged body.
func ReadBody(w http.ResponseWriter, r *http.Request) (list []Member, raw []byte, err error) {
	return readBody(w, r, MaxBody)
}

// ReadChat is ReadBody for a body with a whole conversation.
func ReadChat(w http.ResponseWriter, r *http.Request) (list []Member, raw []byte, err error) {
	return readBody(w, r, MaxChat)
}

func readBody(w http.ResponseWriter, r *http.Request, most int64) (list []Member, raw []byte, err error) {
	if raw, err = readJSON(w, r, most); err != nil {
		return nil, nil, err
	}
	list, err = Object(raw)
	return Given(list), raw, err
}

// ReadJSON reads a request's body. It checks the size and the type before it reads anything.
func ReadJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) { return readJSON(w, r, MaxBody) }

// ReadLargeJSON is ReadJSON for a body with a document of 1 MiB, whose characters may be escaped.
func ReadLargeJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readJSON(w, r, maxLargeBody)
}

const maxLargeBody = 8 << 20

func readJSON(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	if err := jsonContent(r.Header); err != nil {
		return nil, err
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(BodyTime))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		HangUp(w)
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, tooLarge(most)
		}
		return nil, fault.New(fault.InvalidJSON, "The body ended before it was complete.")
	}
	_ = rc.SetReadDeadline(time.Time{}) // otherwise the connection would later count as closed
	return raw, nil
}

// HangUp closes the connection after the response. Otherwise net/http would read the rest of the
// body before it sends the response, and the rest may never arrive.
func HangUp(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

func tooLarge(most int64) *fault.Error {
	return fault.New(fault.PayloadTooLarge, "The body is larger than %d bytes.", most)
}

// jsonContent checks that a body is uncompressed JSON in UTF-8.
func jsonContent(h http.Header) error {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.New(fault.UnsupportedMediaType, "Send the body without Content-Encoding.")
	}
	t, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset, hasCharset := params["charset"]
	if err != nil || t != JSONType || hasCharset && !strings.EqualFold(charset, "utf-8") || len(h.Values("Content-Type")) != 1 {
		return fault.New(fault.UnsupportedMediaType, "Send the body as Content-Type: application/json, in UTF-8.")
	}
	return nil
}
