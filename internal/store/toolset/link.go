package toolset

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Link is a link with which a browser connects a server for a holder. It works until the grant has
// arrived or its time is over.
type Link struct {
	ID        uuid.UUID
	Workspace uuid.UUID
	Server    uuid.UUID
	Holder    string
	Session   uuid.UUID // whose turn waits; uuid.Nil: an administrator made the link
	Approval  uuid.UUID // the question of that turn
	Flow      []byte    // what the authorization request needs afterwards, sealed
	Scopes    []string  // to ask for besides those of the entry and of the present grant
	ExpiresAt time.Time

	WorkspaceName string
	ServerName    string
	ServerURL     string
}

// IsForTurn reports whether a turn waits for the grant; otherwise an administrator has made the link.
func (l Link) IsForTurn() bool { return l.Session != uuid.Nil }

// NewLink is a request for a link.
type NewLink struct {
	Workspace uuid.UUID
	Server    string // the name of an entry with OAuth
	Caller    string // the holder, if each caller has a grant
	Session   uuid.UUID
	Approval  uuid.UUID
	Grant     uuid.UUID // the grant that was not enough for the turn; uuid.Nil: there was none
	Scopes    []string  // to ask for besides those of the entry and of the present grant
	Life      time.Duration
}

// LinkLife is how long an administrator's link works.
const LinkLife = 15 * time.Minute

// CreateLink makes a link and returns its code, which the database does not have.
func (s *Store) CreateLink(ctx context.Context, n NewLink) (id uuid.UUID, code string, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		id, code, err = s.CreateLinkIn(ctx, tx, n)
		return err
	})
	return id, code, err
}

// CreateLinkIn is CreateLink in a transaction.
func (s *Store) CreateLinkIn(ctx context.Context, tx pgx.Tx, n NewLink) (id uuid.UUID, code string, err error) {
	id, code = uuid.Must(uuid.NewV7()), rand.Text()
	p := db.ToolLinkInsertParams{ID: id, WorkspaceID: n.Workspace, Server: n.Server, Holder: n.Caller, CodeHash: hashText(code),
		Scopes: n.Scopes, Seconds: n.Life.Seconds()}
	if n.Session != uuid.Nil {
		p.SessionID, p.ApprovalID = &n.Session, &n.Approval
	}
	if n.Grant != uuid.Nil {
		p.GrantID = &n.Grant
	}
	made, err := db.New(tx).ToolLinkInsert(ctx, p)
	if err != nil {
		return id, "", fmt.Errorf("store a link: %w", err)
	}
	if made == 0 {
		return id, "", fault.New(fault.ObjectConflict, "The workspace has no tool server %.80q with OAuth.", n.Server)
	}
	return id, code, nil
}

// errNoLink is the error for a link that does not exist, or does not any more.
func errNoLink() error {
	return fault.New(fault.ObjectNotFound, "This link does not work any more, or it is not complete: it was used, its time is over, "+
		"or its tool server was removed. Send your message to the agent again, and open the link that it shows then.")
}

// ErrUnknownLink is errNoLink for addresses that cannot be links.
var ErrUnknownLink = errNoLink()

// checkUsable fails for a link that was used or is over.
func (l Link) checkUsable(used *time.Time, over bool) error {
	again := "send your message to the agent again, and open the link that it shows then"
	if !l.IsForTurn() {
		again = fmt.Sprintf("make another link: parley tools connect %s", l.ServerName)
	}
	switch {
	case used != nil:
		return fault.New(fault.ApprovalExpired, "This link was used at %s, and it works once. If you have used it, you can close this window. "+
			"To connect the tool server %s again, %s.", used.UTC().Format("15:04 MST"), l.ServerName, again)
	case over:
		return fault.New(fault.ApprovalExpired, "This link expired at %s, so the tool server "+
			"%s was not connected. To connect it, %s.",
			l.ExpiresAt.UTC().Format("15:04 MST"), l.ServerName, again)
	}
	return nil
}

// LinkByCode returns the link with a code. The error for one that cannot be used any more says why.
func (s *Store) LinkByCode(ctx context.Context, code string) (Link, error) {
	row, err := s.q.ToolLinkByCode(ctx, hashText(code))
	if errors.Is(err, pgx.ErrNoRows) {
		return Link{}, errNoLink()
	}
	if err != nil {
		return Link{}, fmt.Errorf("find a link: %w", err)
	}
	link := linkOf(row.ToolLink, row.Workspace, row.Server, row.URL)
	return link, link.checkUsable(row.ToolLink.UsedAt, row.Over)
}

// BeginFlow stores the authorization request of a link in place of an earlier one.
func (s *Store) BeginFlow(ctx context.Context, link uuid.UUID, state string, flow []byte) error {
	n, err := s.q.ToolLinkBegin(ctx, hashText(state), flow, link)
	if err == nil && n == 0 {
		return errNoLink()
	}
	if err != nil {
		return fmt.Errorf("store an authorization request: %w", err)
	}
	return nil
}

// TakeFlow ends the authorization request with a state, and returns its link. A state works once.
func (s *Store) TakeFlow(ctx context.Context, state string) (link Link, err error) {
	hash := hashText(state)
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		row, err := q.ToolLinkByState(ctx, hash)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNoLink()
		}
		if err != nil {
			return fmt.Errorf("find an authorization request: %w", err)
		}
		link = linkOf(row.ToolLink, row.Workspace, row.Server, row.URL)
		n, err := q.ToolLinkTake(ctx, hash)
		if err == nil && n == 0 {
			return errNoLink()
		}
		return err
	})
	return link, err
}

// EndLink records in a transaction that a link was used. It fails if the link was used before.
func (s *Store) EndLink(ctx context.Context, tx pgx.Tx, link uuid.UUID) error {
	n, err := db.New(tx).ToolLinkUsed(ctx, link)
	if err != nil {
		return fmt.Errorf("end a link: %w", err)
	}
	if n == 0 {
		return errNoLink()
	}
	return nil
}

// PurgeLinks removes old links.
func (s *Store) PurgeLinks(ctx context.Context) error {
	if err := s.q.ToolLinksPurge(ctx); err != nil {
		return fmt.Errorf("remove old links: %w", err)
	}
	return nil
}

func linkOf(r db.ToolLink, workspace, server, address string) Link {
	l := Link{ID: r.ID, Workspace: r.WorkspaceID, Server: r.ServerID, Holder: r.Holder, Flow: r.Flow, Scopes: r.Scopes, ExpiresAt: r.ExpiresAt,
		WorkspaceName: workspace, ServerName: server, ServerURL: address}
	if r.SessionID != nil && r.ApprovalID != nil {
		l.Session, l.Approval = *r.SessionID, *r.ApprovalID
	}
	return l
}

func hashText(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}
