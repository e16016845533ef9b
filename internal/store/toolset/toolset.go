// Package toolset owns the tools that a workspace adds to the built-in ones: its entries, which are
// MCP servers and HTTP APIs, and the definitions of their tools.
//
// It promises: only a definition that an administrator has accepted or written reaches the model. A
// server that changes the definition of a tool disables that tool until the change is accepted, with
// both definitions in the log of changes. The name of a tool is valid for every provider, unique in
// its workspace and never that of a built-in tool. It makes no requests.
package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Kind is how the tools of an entry are called.
type Kind string

const (
	MCP  Kind = "mcp"  // a server of the Model Context Protocol over Streamable HTTP
	HTTP Kind = "http" // an HTTP API: each tool is a request, which an administrator has defined
)

// Label classifies the calls of a tool. An administrator sets it.
type Label string

const (
	ReadOnly Label = "read_only" // they read
	Changes  Label = "changes"   // they change something, so each needs an approval by default
)

// Server is an entry of a workspace.
type Server struct {
	ID          uuid.UUID
	Name        string
	Kind        Kind
	URL         string
	Headers     map[string]string // ${NAME} in a value stands for a credential
	Allowed     []string          // the server's names of the tools to take; nil: every tool
	Timeout     time.Duration     // of a call
	Auth        Auth
	Enabled     bool
	Protocol    string     // revision of MCP at the last refresh
	RefreshedAt *time.Time // when the definitions were last read
	LastUsedAt  *time.Time
	LastError   string // of the last use or refresh; "": it succeeded
	LastErrorAt *time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Tools       []Tool // by name
}

// Tool is a tool of an entry.
type Tool struct {
	ID          uuid.UUID
	OwnName     string      // as the server calls it
	Name        string      // as the model sees it
	Definition  *Definition // accepted; nil: never
	Offered     *Definition // the server's present one, if it waits for acceptance
	OfferedHash string      // of Offered, in hex
	Missing     bool        // the server did not list it at the last refresh
	Label       Label
	Enabled     bool
}

// State is whether the model may use a tool, and if not, why.
type State string

const (
	Usable   State = "usable"
	New      State = "new"      // it was never accepted
	Changed  State = "changed"  // the server offers another definition than the accepted one
	Missing  State = "missing"  // the server does not offer it any more
	Disabled State = "disabled" // an administrator has disabled it
)

// State returns the state of a tool of an enabled entry.
func (t Tool) State() State {
	switch {
	case t.Missing:
		return Missing
	case t.Definition == nil:
		return New
	case t.Offered != nil:
		return Changed
	case !t.Enabled:
		return Disabled
	}
	return Usable
}

// IsRepeatable reports whether a call may be made again if its outcome is unknown: an administrator
// has labelled the tool as reading, or has accepted a definition in which a repetition has no
// further effect.
func (t Tool) IsRepeatable() bool {
	return t.Label == ReadOnly || t.Definition != nil && t.Definition.Annotations.Idempotent
}

var reference = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]{0,63})\}`)

// Secrets returns the names of the credentials that requests to the entry carry.
func (s Server) Secrets() (names []string) {
	for _, value := range s.Headers {
		for _, m := range reference.FindAllStringSubmatch(value, -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FillHeaders returns the headers with every ${NAME} replaced by what stand returns for NAME.
func (s Server) FillHeaders(stand func(name string) string) map[string]string {
	filled := make(map[string]string, len(s.Headers))
	for name, value := range s.Headers {
		filled[name] = reference.ReplaceAllStringFunc(value, func(ref string) string { return stand(ref[2 : len(ref)-1]) })
	}
	return filled
}

// Store reads and writes entries.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

// NewStore returns a store.
func NewStore(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})}
}

// List returns the entries of a workspace with all their tools, by name.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Server, error) {
	return s.read(ctx, s.q, workspace, nil)
}

// Find returns an entry, or OBJECT_NOT_FOUND.
func (s *Store) Find(ctx context.Context, workspace uuid.UUID, name string) (Server, error) {
	return s.find(ctx, s.q, workspace, name)
}

func (s *Store) find(ctx context.Context, q *db.Queries, workspace uuid.UUID, name string) (Server, error) {
	list, err := s.read(ctx, q, workspace, &name)
	if err != nil {
		return Server{}, err
	}
	if len(list) == 0 {
		return Server{}, noServer(name)
	}
	return list[0], nil
}

func (s *Store) read(ctx context.Context, q *db.Queries, workspace uuid.UUID, name *string) ([]Server, error) {
	rows, err := q.ToolServers(ctx, workspace, name)
	if err != nil {
		return nil, fmt.Errorf("read tool servers: %w", err)
	}
	list, ids := make([]Server, len(rows)), make([]uuid.UUID, len(rows))
	for i, r := range rows {
		if list[i], err = serverOf(r); err != nil {
			return nil, err
		}
		ids[i] = r.ID
	}
	tools, err := q.ToolDefinitions(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	for _, r := range tools {
		t, err := toolOf(r)
		if err != nil {
			return nil, err
		}
		of := &list[slices.Index(ids, r.ServerID)]
		of.Tools = append(of.Tools, t)
	}
	return list, nil
}

// Usable returns the tools that the model may be offered, by entry.
func (s *Store) Usable(ctx context.Context, workspace uuid.UUID) (list []Server, err error) {
	rows, err := s.q.ToolsUsable(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read the usable tools: %w", err)
	}
	for _, r := range rows {
		if n := len(list); n == 0 || list[n-1].ID != r.ToolServer.ID {
			server, err := serverOf(r.ToolServer)
			if err != nil {
				return nil, err
			}
			list = append(list, server)
		}
		t, err := toolOf(r.ToolDefinition)
		if err != nil {
			return nil, err
		}
		of := &list[len(list)-1]
		of.Tools = append(of.Tools, t)
	}
	return list, nil
}

// Names returns the names of all tools of a workspace as models see them, also of those that are
// not usable.
func (s *Store) Names(ctx context.Context, workspace uuid.UUID) ([]string, error) {
	names, err := s.q.ToolNames(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read the names of tools: %w", err)
	}
	return names, nil
}

// CheckNames returns the violations of tools that a message brings along: names that the tools of the
// workspace have, and too many of both.
func (s *Store) CheckNames(ctx context.Context, workspace uuid.UUID, names []string) (vs []fault.Violation, err error) {
	own, err := s.Names(ctx, workspace)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if slices.Contains(own, name) {
			vs = append(vs, fault.Violation{Param: fmt.Sprintf("/tools/%d/name", i), Rule: "unique",
				Message: fmt.Sprintf("The workspace has a tool %s of its own. Use another name.", name)})
		}
	}
	if n := len(names) + len(own); n > MaxTools {
		vs = append(vs, fault.Violation{Param: "/tools", Rule: "max_items", Expected: MaxTools,
			Message: fmt.Sprintf("The workspace has %d tools of its own, and no more than %d with those of a message are offered to a "+
				"model. Send fewer.", len(own), MaxTools)})
	}
	return vs, nil
}

// NoteUse records the outcome of a use of an entry; reason is "" after a success.
func (s *Store) NoteUse(ctx context.Context, server uuid.UUID, reason string) error {
	var failed *string
	if reason != "" {
		failed = &reason
	}
	if err := s.q.ToolServerUsed(ctx, server, failed); err != nil {
		return fmt.Errorf("record the use of a tool server: %w", err)
	}
	return nil
}

func noServer(name string) error {
	return fault.New(fault.ObjectNotFound, "The workspace has no tool server %.80q.", name)
}

func noTool(server, name string) error {
	return fault.New(fault.ObjectNotFound, "The tool server %s has no tool %.80q.", server, name)
}

func serverOf(r db.ToolServer) (Server, error) {
	s := Server{
		Auth: authOf(r), ID: r.ID, Name: r.Name, Kind: Kind(r.Kind), URL: r.URL, Allowed: r.Allowed,
		Timeout: time.Duration(r.TimeoutSeconds) * time.Second,
		Enabled: r.Enabled, Protocol: r.Protocol, RefreshedAt: r.RefreshedAt, LastUsedAt: r.LastUsedAt, LastErrorAt: r.LastErrorAt,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.LastError != nil {
		s.LastError = *r.LastError
	}
	if err := json.Unmarshal(r.Headers, &s.Headers); err != nil {
		return s, fmt.Errorf("read the headers of the tool server %s: %w", r.Name, err)
	}
	return s, nil
}

func toolOf(r db.ToolDefinition) (Tool, error) {
	t := Tool{ID: r.ID, OwnName: r.OwnName, Name: r.Name, Missing: r.Missing, Label: Label(r.Label), Enabled: r.Enabled}
	if r.OfferedHash != nil {
		t.OfferedHash = fmt.Sprintf("%x", r.OfferedHash)
	}
	for raw, to := range map[*[]byte]**Definition{&r.Definition: &t.Definition, &r.Offered: &t.Offered} {
		if *raw == nil {
			continue
		}
		if err := json.Unmarshal(*raw, to); err != nil {
			return t, fmt.Errorf("read the definition of the tool %s: %w", r.Name, err)
		}
	}
	return t, nil
}

// lockServer locks an entry for a change of its tools.
func lockServer(ctx context.Context, q *db.Queries, workspace uuid.UUID, name string) (db.ToolServer, error) {
	row, err := q.ToolServerLock(ctx, workspace, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, noServer(name)
	}
	if err != nil {
		return row, fmt.Errorf("lock a tool server: %w", err)
	}
	return row, nil
}
