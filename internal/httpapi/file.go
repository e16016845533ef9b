package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/filestore"
)

const (
	maxGivenName = 1000 // characters of a filename, of which fewer are kept
	maxMIME      = 127  // characters
)

// ticketFields and downloadFields are all the names that the bodies may have.
var (
	ticketFields   = []string{"filename", "mime", "size", "sha256", "origin_url"}
	downloadFields = []string{"file_id", "session_id", "turn_id", "filename"}
)

// createFile answers with a ticket: where to send the bytes of a file, or that the
// service gets them itself.
func (s *server) createFile(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	body, raw, err := readBody(w, r.Request)
	if err != nil {
		return err
	}
	n, err := parseTicket(r.query().checks, body, r.Header)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(raw)
	n.Workspace, n.Key, n.Hash = r.workspace.ID, r.caller.Key, hash[:]
	n.Unrestricted = r.caller.Scopes.Allows(apikey.FilesWriteUnrestricted)
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	ticket, err := s.cfg.Files.Create(ctx, n)
	if err != nil {
		return err
	}
	if ticket.Replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if ticket.Upload == nil {
		return writeData(w, http.StatusAccepted, ticket)
	}
	ticket.Upload.URL = s.absolute(r, ticket.Upload.URL)
	return writeData(w, http.StatusCreated, ticket)
}

// parseTicket checks what is known without a database, after what was found before.
func parseTicket(c checks, body []member, h http.Header) (filestore.Request, error) {
	var n filestore.Request
	given := make(map[string]bool)
	for _, f := range body {
		param := pointer(f.name)
		given[f.name] = true
		switch f.name {
		case "filename":
			n.Filename = c.filename(param, f.value)
		case "mime":
			n.MIME = c.word(param, f.value, maxMIME)
		case "size":
			n.Size = new(int64(c.integer(param, f.value, 0, 1<<53)))
		case "sha256":
			n.SHA256 = c.sha256(param, f.value)
		case "origin_url":
			n.OriginURL = c.word(param, f.value, maxURL)
		default:
			c.unknown("field", param, f.name, ticketFields)
		}
	}
	for _, name := range []string{"filename", "mime", "size"} {
		if !given[name] && (name == "filename" || !given["origin_url"]) {
			c.add(fault.Violation{Param: "/" + name, Rule: "required", Message: name + " is missing."})
		}
	}
	n.Once = c.once(h.Values("Idempotency-Key"))
	return n, c.err()
}

// filename reads a name. Whatever is in it, the store makes one of it that can be kept.
func (c *checks) filename(param string, raw json.RawMessage) string {
	s, ok := c.text(param, raw)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		c.add(fault.Violation{Param: param, Rule: "min_length", Message: param[1:] + " is empty.", Expected: 1})
	case len([]rune(s)) > maxGivenName:
		c.longer(param, "characters", maxGivenName)
	}
	return filestore.Name(s)
}

func (c *checks) sha256(param string, raw json.RawMessage) []byte {
	s, ok := c.text(param, raw)
	sum, err := hex.DecodeString(s)
	if ok && (err != nil || len(sum) != sha256.Size) {
		c.add(fault.Violation{Param: param, Rule: "format", Message: param[1:] + " is 64 hexadecimal digits."})
	}
	return sum
}

// downloadQuery is what downloadFiles is asked for.
type downloadQuery struct {
	file, session, turn *uuid.UUID
	filename            *string
}

func parseDownload(c checks, body []member) (q downloadQuery, err error) {
	for _, f := range body {
		param := pointer(f.name)
		switch f.name {
		case "file_id":
			q.file = new(c.uuid(param, f.value))
		case "session_id":
			q.session = new(c.uuid(param, f.value))
		case "turn_id":
			q.turn = new(c.uuid(param, f.value))
		case "filename":
			q.filename = new(c.filename(param, f.value))
		default:
			c.unknown("field", param, f.name, downloadFields)
		}
	}
	if len(c.violations) == 0 && ((q.file == nil) == (q.session == nil) || q.file != nil && (q.turn != nil || q.filename != nil)) {
		c.add(fault.Violation{Param: "/file_id", Rule: "exactly_one", Message: "Name a file by file_id, or those of a session by session_id, which turn_id and filename may narrow."})
	}
	return q, c.err()
}

// downloadFiles answers with fresh addresses: of one file, or of what a session has
// produced.
func (s *server) downloadFiles(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	body, _, err := readBody(w, r.Request)
	if err != nil {
		return err
	}
	q, err := parseDownload(r.query().checks, body)
	if err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	list := make([]filestore.Download, 1)
	if q.file != nil {
		list[0], err = s.cfg.Files.Download(ctx, r.workspace.ID, *q.file)
	} else if _, err = s.cfg.Sessions.Head(ctx, r.workspace.ID, *q.session); err == nil {
		list, err = s.cfg.Files.Downloads(ctx, r.workspace.ID, *q.session, q.turn, q.filename)
	}
	if err != nil {
		return err
	}
	for i := range list {
		list[i].DownloadURL = s.absolute(r, list[i].DownloadURL)
	}
	return writeData(w, http.StatusOK, list)
}

// getFile answers with what a file is known by: above all, how far it has come.
func (s *server) getFile(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	if err := r.query().err(); err != nil {
		return err
	}
	text := mux.Vars(r.Request)["fileId"]
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return fault.New(fault.FileNotFound, "There is no such file.")
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	f, err := s.cfg.Files.Get(ctx, r.workspace.ID, id)
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, f)
}

// listFiles answers with one page of the workspace's files.
func (s *server) listFiles(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	p := r.query()
	limit, cursor := p.limit(20), p.one("cursor")
	direction := filestore.Direction(p.enum("direction", string(filestore.In), string(filestore.Out)))
	if err := p.err(); err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	page, err := s.cfg.Files.List(ctx, r.workspace.ID, direction, limit, cursor)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// absolute completes an address that the store could only begin with a slash.
func (s *server) absolute(r *request, address string) string {
	if strings.HasPrefix(address, "/") {
		return s.base(r.Request) + address
	}
	return address
}

// complete is absolute for files that are shown.
func (s *server) complete(r *request, files []event.File) {
	for i := range files {
		files[i].DownloadURL = s.absolute(r, files[i].DownloadURL)
	}
}
