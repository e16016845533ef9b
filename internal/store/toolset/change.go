package toolset

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Entry is a new entry of a workspace.
type Entry struct {
	Name    string
	Kind    Kind // default: MCP
	URL     string
	Headers map[string]string // see Server.Headers
	Allowed []string          // see Server.Allowed
	Timeout time.Duration     // of a call; 0: DefaultTimeout
	Auth    Auth
}

// DefaultTimeout is how long a call may take.
const DefaultTimeout = time.Minute

// MaxServers is how many entries a workspace has.
const MaxServers = 64

// Server returns the entry as an unstored server, for a first connection.
func (e Entry) Server() Server {
	if e.Timeout == 0 {
		e.Timeout = DefaultTimeout
	}
	return Server{Name: e.Name, Kind: cmp.Or(e.Kind, MCP), URL: e.URL, Headers: e.Headers, Allowed: e.Allowed, Timeout: e.Timeout,
		Auth: e.Auth, Enabled: true}
}

// Add adds a server with the tools that it offers. To add a server is to accept them. offers is nil
// for a server that must be connected first: its first Refresh accepts what it offers then. A name
// in use is an INVALID_REQUEST.
func (s *Store) Add(
	ctx context.Context, workspace uuid.UUID, e Entry, protocol string, offers []Offer,
) (added Server, skipped []Skipped, err error) {
	if vs := e.Violations(); len(vs) > 0 {
		return added, nil, fault.Invalid(vs...)
	}
	chosen, skipped := chooseOffers(e.Allowed, offers)
	for i, name := range e.Allowed {
		if offers != nil && !slices.ContainsFunc(offers, func(o Offer) bool { return o.OwnName == name }) {
			return added, skipped, fault.Invalid(fault.Violation{Param: fmt.Sprintf("/allow/%d", i), Rule: "unknown",
				Message: fmt.Sprintf("The server has no tool %.80q.", name)})
		}
	}
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := insertServer(ctx, q, workspace, e)
		if err != nil {
			return err
		}
		more, err := insertTools(ctx, q, row, chosen, true)
		if err != nil {
			return err
		}
		skipped = append(skipped, more...)
		if err := checkRoom(ctx, q, workspace); err != nil {
			return err
		}
		if offers != nil {
			if err := q.ToolServerRefreshed(ctx, row.ID, protocol); err != nil {
				return fmt.Errorf("record the refresh of a tool server: %w", err)
			}
		}
		added, err = s.find(ctx, q, workspace, e.Name)
		return err
	})
	return added, skipped, err
}

// insertServer adds an entry without tools.
func insertServer(ctx context.Context, q *db.Queries, workspace uuid.UUID, e Entry) (row db.ToolServer, err error) {
	n, err := q.ToolServerCount(ctx, workspace)
	if err != nil {
		return row, fmt.Errorf("count tool servers: %w", err)
	}
	if n >= MaxServers {
		return row, fault.Invalid(fault.Violation{Param: "/name", Rule: "length",
			Message: fmt.Sprintf("A workspace has at most %d tool servers.", MaxServers)})
	}
	headers := []byte("{}")
	if e.Headers != nil {
		if headers, err = json.Marshal(e.Headers); err != nil {
			return row, fmt.Errorf("encode headers: %w", err)
		}
	}
	row, err = q.ToolServerInsert(ctx, db.ToolServerInsertParams{WorkspaceID: workspace, Name: e.Name,
		Kind: string(e.Server().Kind), URL: e.URL,
		Headers: headers, Allowed: e.Allowed, TimeoutSeconds: int32(e.Server().Timeout / time.Second), Auth: e.Auth.kind(), AuthPer: e.Auth.per(),
		ClientID: nilIfEmpty(e.Auth.ClientID), ClientSecretName: nilIfEmpty(e.Auth.ClientSecret), Scopes: e.Auth.Scopes})
	if errors.Is(err, pgx.ErrNoRows) {
		return row, fault.Invalid(fault.Violation{Param: "/name", Rule: "unique",
			Message: fmt.Sprintf("There is a tool server %q already.", e.Name)})
	}
	if err != nil {
		return row, fmt.Errorf("add a tool server: %w", err)
	}
	return row, nil
}

// checkRoom fails if a workspace has accepted too many tools. It is called after a change, in its
// transaction, and waits for other changes of the workspace.
func checkRoom(ctx context.Context, q *db.Queries, workspace uuid.UUID) error {
	if err := q.ToolsLock(ctx, workspace); err != nil {
		return fmt.Errorf("lock the tools of a workspace: %w", err)
	}
	n, err := q.ToolsAccepted(ctx, workspace)
	if err != nil {
		return fmt.Errorf("count tools: %w", err)
	}
	if n > MaxTools {
		return fault.Invalid(fault.Violation{Param: "", Rule: "max_items", Expected: MaxTools,
			Message: fmt.Sprintf("A workspace has at most %d tools of its own, and these would be %d. Take fewer tools of this "+
				"server, or remove others.", MaxTools, n)})
	}
	return nil
}

// insertTools adds tools of a server. Their definitions are accepted, or wait for it.
func insertTools(ctx context.Context, q *db.Queries, server db.ToolServer, offers []Offer, accepted bool) (skipped []Skipped, err error) {
	for _, o := range offers {
		raw, hash, err := o.encode()
		if err != nil {
			return nil, err
		}
		p := db.ToolDefinitionInsertParams{WorkspaceID: server.WorkspaceID, ServerID: server.ID, OwnName: o.OwnName,
			Name: ModelName(server.Name, o.OwnName)}
		if accepted {
			p.Definition, p.Hash = raw, hash
		} else {
			p.Offered, p.OfferedHash = raw, hash
		}
		n, err := q.ToolDefinitionInsert(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("add a tool: %w", err)
		}
		if n == 0 {
			skipped = append(skipped, Skipped{o.OwnName, "Another tool of the workspace has the name " + p.Name + "."})
		}
	}
	return skipped, nil
}

// Refresh compares the tools that a server offers now with the stored ones. New tools and changed
// definitions wait for acceptance; a changed tool is not usable until then. The first refresh of a
// server that was added without tools accepts them.
func (s *Store) Refresh(
	ctx context.Context, workspace uuid.UUID, name, protocol string, offers []Offer,
) (fresh Server, skipped []Skipped, err error) {
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := lockServer(ctx, q, workspace, name)
		if err != nil {
			return err
		}
		held, err := q.ToolDefinitions(ctx, []uuid.UUID{row.ID})
		if err != nil {
			return fmt.Errorf("read tools: %w", err)
		}
		var chosen []Offer
		chosen, skipped = chooseOffers(row.Allowed, offers)
		for _, h := range held {
			i := slices.IndexFunc(chosen, func(o Offer) bool { return o.OwnName == h.OwnName })
			if i < 0 && h.Definition == nil { // no use of it can depend on an accepted definition
				err = q.ToolDefinitionForget(ctx, h.ID)
			} else if i < 0 {
				err = q.ToolDefinitionOffered(ctx, h.ID, h.Offered, h.OfferedHash, true)
			} else {
				err = compareTool(ctx, q, h, chosen[i])
				chosen = slices.Delete(chosen, i, i+1)
			}
			if err != nil {
				return fmt.Errorf("compare a tool: %w", err)
			}
		}
		more, err := insertTools(ctx, q, row, chosen, row.RefreshedAt == nil)
		if err != nil {
			return err
		}
		skipped = append(skipped, more...)
		if row.RefreshedAt == nil {
			if err := checkRoom(ctx, q, workspace); err != nil {
				return err
			}
		}
		if err := q.ToolServerRefreshed(ctx, row.ID, protocol); err != nil {
			return fmt.Errorf("record the refresh of a tool server: %w", err)
		}
		fresh, err = s.find(ctx, q, workspace, name)
		return err
	})
	return fresh, skipped, err
}

// compareTool records the offered definition of a tool if it is not the accepted one.
func compareTool(ctx context.Context, q *db.Queries, held db.ToolDefinition, o Offer) error {
	raw, hash, err := o.encode()
	if err != nil {
		return err
	}
	if slices.Equal(hash, held.Hash) {
		raw, hash = nil, nil
	}
	return q.ToolDefinitionOffered(ctx, held.ID, raw, hash, false)
}

// Accept accepts the offered definition of a tool. seen is the OfferedHash that the administrator
// has read: if the server has offered another one since, Accept fails with PRECONDITION_FAILED.
func (s *Store) Accept(ctx context.Context, workspace uuid.UUID, server, tool, seen string) (Server, error) {
	hash, _ := hex.DecodeString(seen)
	return s.change(ctx, workspace, server, tool, func(q *db.Queries, t db.ToolDefinition) error {
		if t.Offered == nil {
			return fault.New(fault.ObjectConflict, "No change of %s waits for acceptance.", t.Name)
		}
		n, err := q.ToolDefinitionAccept(ctx, t.ID, hash)
		if err != nil {
			return fmt.Errorf("accept a definition: %w", err)
		}
		if n == 0 {
			return fault.New(fault.PreconditionFailed, "The server offers another definition of %s than the one you have read. "+
				"Read it again, and accept that.", t.Name)
		}
		return checkRoom(ctx, q, workspace)
	})
}

// SetTool labels, enables or disables a tool; nil keeps what is set.
func (s *Store) SetTool(ctx context.Context, workspace uuid.UUID, server, tool string, label *Label, enabled *bool) (Server, error) {
	if label != nil && *label != ReadOnly && *label != Changes {
		return Server{}, fault.Invalid(fault.Violation{Param: "/label", Rule: "enum", Message: "The label of a tool is read_only or changes."})
	}
	return s.change(ctx, workspace, server, tool, func(q *db.Queries, t db.ToolDefinition) error {
		if err := q.ToolDefinitionSet(ctx, t.ID, (*string)(label), enabled); err != nil {
			return fmt.Errorf("set a tool: %w", err)
		}
		return nil
	})
}

// change changes a tool, which is named as the server or as the model sees it, and returns its
// server.
func (s *Store) change(
	ctx context.Context, workspace uuid.UUID, server, tool string, f func(*db.Queries, db.ToolDefinition) error,
) (changed Server, err error) {
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := lockServer(ctx, q, workspace, server)
		if err != nil {
			return err
		}
		held, err := q.ToolDefinitions(ctx, []uuid.UUID{row.ID})
		if err != nil {
			return fmt.Errorf("read tools: %w", err)
		}
		i := slices.IndexFunc(held, func(t db.ToolDefinition) bool { return t.OwnName == tool })
		if i < 0 {
			i = slices.IndexFunc(held, func(t db.ToolDefinition) bool { return t.Name == tool })
		}
		if i < 0 {
			return noTool(server, tool)
		}
		if err := f(q, held[i]); err != nil {
			return err
		}
		changed, err = s.find(ctx, q, workspace, server)
		return err
	})
	return changed, err
}

// Enable enables or disables an entry with all its tools.
func (s *Store) Enable(ctx context.Context, workspace uuid.UUID, name string, enabled bool) error {
	n, err := s.q.ToolServerEnable(ctx, workspace, name, enabled)
	if err != nil {
		return fmt.Errorf("enable a tool server: %w", err)
	}
	if n == 0 {
		return noServer(name)
	}
	return nil
}

// Remove removes an entry with its tools, and the rules of these tools.
func (s *Store) Remove(ctx context.Context, workspace uuid.UUID, name string) error {
	n, err := s.q.ToolServerDelete(ctx, workspace, name)
	if err != nil {
		return fmt.Errorf("remove a tool server: %w", err)
	}
	if n == 0 {
		return noServer(name)
	}
	return nil
}
