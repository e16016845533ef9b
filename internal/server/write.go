package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/parley-server/parley/internal/server/request"
)

// WriteJSON responds with a value.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := Encode(v)
	if err == nil {
		WriteBody(w, status, body)
	}
	return err
}

// Encode encodes a value in the format of responses.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return buf.Bytes(), nil
}

// WriteData responds with a value in the envelope of successes.
func WriteData(w http.ResponseWriter, status int, v any) error {
	return WriteJSON(w, status, struct {
		Data any `json:"data"`
	}{v})
}

// WriteBody responds with encoded JSON.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", request.JSONType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the caller has left
}
