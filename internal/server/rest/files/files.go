// Package files serves the operations of files: tickets for uploads, addresses for downloads, and
// the bytes themselves. It stores nothing itself.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/filestore"
)

// Limits of a file's properties.
const (
	MaxGivenName = 1000 // characters of a filename; the store keeps fewer
	MaxMIME      = 127  // characters
)

// api has the handlers.
type api struct{ *server.Server }

// Handlers returns the handlers by their operationIds.
func Handlers(srv *server.Server) map[string]call.Handler {
	s := &api{srv}
	return map[string]call.Handler{
		"createFile":    s.createFile,
		"listFiles":     s.listFiles,
		"downloadFiles": s.downloadFiles,
		"getFile":       s.getFile,
		"uploadFile":    s.uploadFile,
		"fetchFile":     s.fetchFile,
	}
}

// ticketFields are the fields of a ticket's request.
var ticketFields = []request.Field[filestore.Request]{
	{Name: "filename", Parse: func(c *request.Checks, at string, raw json.RawMessage, n *filestore.Request) {
		n.Filename = parseFilename(c, at, raw)
	}},
	{Name: "mime", Parse: func(c *request.Checks, at string, raw json.RawMessage, n *filestore.Request) {
		n.MIME = c.Word(at, raw, MaxMIME)
	}},
	{Name: "size", Parse: func(c *request.Checks, at string, raw json.RawMessage, n *filestore.Request) {
		n.Size = new(int64(c.Integer(at, raw, 0, 1<<53)))
	}},
	{Name: "sha256", Parse: func(c *request.Checks, at string, raw json.RawMessage, n *filestore.Request) {
		n.SHA256 = hashOf(c, at, raw)
	}},
	{Name: "origin_url", Parse: func(c *request.Checks, at string, raw json.RawMessage, n *filestore.Request) {
		n.OriginURL = c.Word(at, raw, request.MaxURL)
	}},
}

// downloadFields are the fields of downloadFiles.
var downloadFields = []request.Field[downloadQuery]{
	{Name: "file_id", Parse: func(c *request.Checks, at string, raw json.RawMessage, q *downloadQuery) {
		q.file = new(c.UUID(at, raw))
	}},
	{Name: "session_id", Parse: func(c *request.Checks, at string, raw json.RawMessage, q *downloadQuery) {
		q.session = new(c.UUID(at, raw))
	}},
	{Name: "turn_id", Parse: func(c *request.Checks, at string, raw json.RawMessage, q *downloadQuery) {
		q.turn = new(c.UUID(at, raw))
	}},
	{Name: "filename", Parse: func(c *request.Checks, at string, raw json.RawMessage, q *downloadQuery) {
		q.filename = new(parseFilename(c, at, raw))
	}},
}

// createFile returns a ticket: the address to upload the bytes of a file to, or the confirmation
// that the service downloads them itself.
func (s *api) createFile(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, raw, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	n, err := parseTicket(r.Query().Checks, body, r.Header)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(raw)
	n.Workspace, n.Key, n.Hash = r.Caller.Workspace.ID, r.Caller.Key, hash[:]
	n.Unrestricted = r.Caller.Scopes.Allows(apikey.FilesWriteUnrestricted)
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	ticket, err := s.Files.Create(ctx, n)
	if err != nil {
		return err
	}
	if ticket.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if ticket.Upload == nil {
		return server.WriteData(w, http.StatusAccepted, ticket)
	}
	ticket.Upload.URL = server.AbsoluteURL(s.Base(r.Request), ticket.Upload.URL)
	return server.WriteData(w, http.StatusCreated, ticket)
}

// parseTicket validates a request as far as possible without a database. Its error lists the
// violations in c first.
func parseTicket(c *request.Checks, body []request.Member, h http.Header) (filestore.Request, error) {
	var n filestore.Request
	given := request.ParseMembers(c, "", body, &n, ticketFields, nil)
	for _, name := range []string{"filename", "mime", "size"} {
		if !given[name] && (name == "filename" || !given["origin_url"]) {
			c.Add(fault.Violation{Param: "/" + name, Rule: "required", Message: name + " is missing."})
		}
	}
	n.Once = c.Once(h.Values("Idempotency-Key"))
	return n, c.Err()
}

// parseFilename parses a name. The store makes a safe name of any text.
func parseFilename(c *request.Checks, param string, raw json.RawMessage) string {
	return filestore.Name(c.Prose(param, raw, MaxGivenName))
}

func hashOf(c *request.Checks, param string, raw json.RawMessage) []byte {
	s, ok := c.Text(param, raw)
	sum, err := hex.DecodeString(s)
	if ok && (err != nil || len(sum) != sha256.Size) {
		c.Add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " is 64 hexadecimal digits."})
	}
	return sum
}

// downloadQuery is the parsed request of downloadFiles.
type downloadQuery struct {
	file, session, turn *uuid.UUID
	filename            *string
}

func parseDownload(c *request.Checks, body []request.Member) (q downloadQuery, err error) {
	request.ParseMembers(c, "", body, &q, downloadFields, nil)
	if c.Err() == nil && ((q.file == nil) == (q.session == nil) || q.file != nil && (q.turn != nil || q.filename != nil)) {
		c.Add(fault.Violation{Param: "/file_id", Rule: "exactly_one",
			Message: "Name a file by file_id, or those of a session by session_id, which turn_id and filename may narrow."})
	}
	return q, c.Err()
}

// downloadFiles returns fresh addresses: of one file, or of the files that a session has produced.
func (s *api) downloadFiles(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	q, err := parseDownload(r.Query().Checks, body)
	if err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	list := make([]filestore.Download, 1)
	if q.file != nil {
		list[0], err = s.Files.Download(ctx, r.Caller.Workspace.ID, *q.file)
	} else if _, err = s.Sessions.Head(ctx, r.Caller.Workspace.ID, *q.session); err == nil {
		list, err = s.Files.Downloads(ctx, r.Caller.Workspace.ID, *q.session, q.turn, q.filename)
	}
	if err != nil {
		return err
	}
	for i := range list {
		list[i].DownloadURL = server.AbsoluteURL(s.Base(r.Request), list[i].DownloadURL)
	}
	return server.WriteData(w, http.StatusOK, list)
}

// getFile returns a file's properties, above all its status.
func (s *api) getFile(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	if err := r.Query().Err(); err != nil {
		return err
	}
	id, ok := request.ID(r.PathValue("fileId"))
	if !ok {
		return fault.New(fault.FileNotFound, "The file does not exist.")
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	f, err := s.Files.Get(ctx, r.Caller.Workspace.ID, id)
	if err != nil {
		return err
	}
	return server.WriteData(w, http.StatusOK, f)
}

// listFiles returns one page of the workspace's files.
func (s *api) listFiles(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	p := r.Query()
	limit, cursor := p.Limit(20), p.Cursor()
	direction := filestore.Direction(p.Enum("direction", string(filestore.In), string(filestore.Out)))
	if err := p.Err(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	page, err := s.Files.List(ctx, r.Caller.Workspace.ID, direction, limit, cursor)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, page)
}
