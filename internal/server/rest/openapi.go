package rest

import (
	_ "embed"
	"net/http"
	"strings"
	"sync"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/server/rest/document"
)

// openapi is the route table: a path that it does not name is not served, and every operation in it
// must have a handler, here or in the package of the protocol that x-served-by names.
//
//go:embed openapi.yaml
var openapi []byte

// operation is one entry of the route table.
type operation = document.Operation[call.Handler]

// parseOpenAPI parses the embedded document once for all servers of a process.
var parseOpenAPI = sync.OnceValues(func() (*document.Document, error) { return document.Parse(openapi) })

// loadDocument binds the operations of the document to handlers and sets its values.
func loadDocument(d *document.Document, cfg server.Config, handlers map[string]call.Handler) (document.Encoded, []*operation, error) {
	ops, err := document.Bind(d, handlers)
	if err != nil {
		return document.Encoded{}, nil, err
	}
	doc, err := encodeDocument(d, cfg)
	return doc, ops, err
}

// Document returns the OpenAPI document in JSON, as this configuration serves it.
func Document(cfg server.Config) ([]byte, error) {
	d, err := parseOpenAPI()
	if err != nil {
		return nil, err
	}
	doc, err := encodeDocument(d, cfg)
	return doc.JSON, err
}

// encodeDocument sets the values of the configuration and encodes the document.
func encodeDocument(d *document.Document, cfg server.Config) (document.Encoded, error) {
	d = d.Clone()
	d.Set(cfg.Version, "info", "version")
	if cfg.BaseURL != "" {
		d.Set(strings.TrimSuffix(cfg.BaseURL, "/"), "servers", "0", "url") // clients append paths to it unchanged
	}
	for name, value := range documentLimits(cfg) {
		d.Set(value, "x-limits", name)
	}
	return d.Encode()
}

// getOpenAPI returns the document. It needs no key and no database.
func (s *api) getOpenAPI(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	if err := r.Query().Err(); err != nil {
		return err
	}
	s.document.Write(w, r.Request)
	return nil
}
