package admin

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// operation is a row of the table.
type operation struct {
	id     string // operationId
	method string
	path   string
	scope  apikey.Scope
	query  []string // parameters
	body   []string // members of the body; nil: the operation takes none
	large  bool     // the body has a document
	status int      // of success; default 200
	// calls: the operation sends requests to a server of the workspace. Such a call can take long and
	// cannot be repeated without an effect, so there is no Idempotency-Key for it.
	calls bool
	// ask sends the requests to a tool server that do needs, and keeps their results in the call. do
	// sends them itself unless they are there.
	ask func(context.Context, *call) error
	do  func(context.Context, *call) (any, error)
}

// The results of do besides plain values, which are sent in {"data": …}.
type (
	// listed is a page, which has its envelope already.
	listed struct{ page any }
	// tagged is an object with the version that If-Match names.
	tagged struct {
		value any
		tag   string
	}
	// once is a value with a secret. A repeat under the same Idempotency-Key gets kept instead: the
	// secret is not stored.
	once struct{ value, kept any }
	// sent is a file.
	sent struct {
		workdir.Content
		ctx context.Context
	}
)

// call is a parsed request. Its function reports invalid values to the embedded Checks, and calls
// Err before it changes anything.
type call struct {
	*server.Request
	*request.Checks
	query *request.Query
	body  request.Fields
	nulls map[string]bool // members of the body that are null

	offered *offered // by a tool server; see operation.ask
}

func newCall(r *server.Request) *call {
	c := &call{Request: r, Checks: &request.Checks{}, nulls: make(map[string]bool)}
	c.body.Checks = c.Checks
	return c
}

func (c *call) parseQuery(op operation) {
	c.query = request.ParseQuery(c.Checks, c.URL.RawQuery, op.query)
	for _, name := range op.query {
		c.query.Text(name) // an operation may change something before it reads its parameters
	}
}

// serve parses a request, runs its operation and responds.
func (s *api) serve(w http.ResponseWriter, r *server.Request, op operation) error {
	if err := request.Accepts(r.Request, request.JSONType); err != nil {
		return err
	}
	c := newCall(r)
	raw, err := c.readBody(w, op)
	if err != nil {
		return err
	}
	c.parseQuery(op)
	seen := c.unchangedSince()
	var key string
	if op.method == http.MethodPost {
		key = c.Once(r.Header.Values("Idempotency-Key"))
		if key != "" && op.calls {
			c.Add(fault.Violation{Param: "/Idempotency-Key", Rule: "unknown",
				Message: "This operation calls a tool server, so it has no Idempotency-Key: read the state of the server before you repeat it."})
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	if op.method != http.MethodGet && op.method != http.MethodHead {
		a := s.Actor(w, r.Request, r.Caller)
		a.Seen = seen
		ctx = actor.With(ctx, a)
	}
	if err = s.run(ctx, w, c, op, key, raw); pgerr.IsSuperseded(err) {
		return stale("The object")
	}
	return err
}

// run runs an operation and responds.
func (s *api) run(ctx context.Context, w http.ResponseWriter, c *call, op operation, key string, raw []byte) error {
	if key != "" {
		return s.serveOnce(ctx, w, c, op, key, raw)
	}
	result, err := op.do(ctx, c)
	if err != nil {
		return err
	}
	return respond(w, op.status, result)
}

// readBody parses the members of the body.
func (c *call) readBody(w http.ResponseWriter, op operation) ([]byte, error) {
	if op.body == nil {
		return nil, nil
	}
	read := request.ReadJSON
	if op.large {
		read = request.ReadLargeJSON
	}
	raw, err := read(w, c.Request.Request)
	if err != nil {
		return nil, err
	}
	return raw, c.parseBody(raw, op)
}

func (c *call) parseBody(raw []byte, op operation) error {
	members, err := request.Object(raw)
	if err != nil {
		return err
	}
	for _, m := range members {
		c.nulls[m.Name] = string(m.Value) == "null"
	}
	request.ParseMembers(c.Checks, "", members, &struct{}{}, nil, op.body) // it only rejects other names
	c.body.Members = request.Given(members)
	return nil
}

// serveOnce runs an operation at most once under its Idempotency-Key.
func (s *api) serveOnce(ctx context.Context, w http.ResponseWriter, c *call, op operation, key string, raw []byte) error {
	hash := sha256.Sum256(append([]byte(c.URL.RequestURI()+"\n"), raw...))
	name := session.Once{Workspace: c.Caller.Workspace.ID, Route: op.id, Key: key, Hash: hash[:], Caller: c.Caller.Key}
	var result any
	status, body, replayed, err := s.Sessions.Once(ctx, name, func(ctx context.Context) (int, []byte, error) {
		var err error
		if result, err = op.do(ctx, c); err != nil {
			return 0, nil, err
		}
		kept := result
		if secret, ok := result.(once); ok {
			kept = secret.kept
		}
		body, err := server.Encode(map[string]any{"data": kept})
		return op.status, body, err
	})
	if err != nil {
		return err
	}
	if !replayed {
		return respond(w, op.status, result)
	}
	w.Header().Set("Idempotent-Replayed", "true")
	server.WriteBody(w, status, body)
	return nil
}

func respond(w http.ResponseWriter, status int, result any) error {
	switch v := result.(type) {
	case listed:
		return server.WriteJSON(w, status, v.page)
	case once:
		return server.WriteData(w, status, v.value)
	case sent:
		return v.send(w)
	case tagged:
		w.Header().Set("ETag", `"`+v.tag+`"`)
		return server.WriteData(w, status, v.value)
	}
	return server.WriteData(w, status, result)
}

// expected returns the version that If-Match requires, "" for none.
func (c *call) expected() string {
	tag := strings.TrimSpace(strings.Join(c.Header.Values("If-Match"), ","))
	if tag == "*" {
		return ""
	}
	if tag != "" && (len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' || strings.Contains(tag, ",")) {
		c.Add(fault.Violation{Param: "/If-Match", Rule: "format", Message: "If-Match is one ETag, in quotes, as a response has it."})
		return ""
	}
	return strings.Trim(tag, `"`)
}

// positionHeader requires of a change that its object is unchanged since a position of the log.
const positionHeader = "Parley-Unchanged-Since"

// unchangedSince returns the position that the header requires, "" for none.
func (c *call) unchangedSince() string {
	position := strings.Join(c.Header.Values(positionHeader), ",")
	if position != "" && !adminlog.IsPosition(position) {
		c.Add(fault.Violation{Param: "/" + positionHeader, Rule: "format",
			Message: positionHeader + " is log_position, as a workspace has it in a response."})
		return ""
	}
	return position
}

// stale returns the error for a version that is not the newest.
func stale(what string) error {
	return fault.New(fault.PreconditionFailed, "%s has changed since you read it. Read it again, and repeat your change.", what)
}

// notFound returns the error for an object that the workspace does not have.
func notFound(what, name string) error {
	return fault.New(fault.ObjectNotFound, "The workspace has no %s %.80q.", what, name)
}

// asNotFound is notFound with the message and the candidates of a fault.
func asNotFound(err error) error {
	f := fault.From(err)
	return &fault.Error{Code: fault.ObjectNotFound, Message: f.Message, Detail: fault.Detail{Candidates: f.Detail.Candidates}}
}

// deleted is the response to a deletion.
type deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}
