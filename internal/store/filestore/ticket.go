package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Request is a request to upload a file.
type Request struct {
	Workspace    uuid.UUID
	Key          string // id of the API key
	Unrestricted bool   // the key has files:write:unrestricted
	Filename     string // as the caller wrote it
	MIME         string // media type; "": detected, if the service fetches the file
	Size         *int64 // size in bytes; nil: any, if the service fetches the file
	SHA256       []byte // hash of the content; nil: any
	OriginURL    string // URL from which the service fetches the file; "": the caller sends the bytes
	Once         string // Idempotency-Key
	Hash         []byte // SHA-256 of the request
}

// Ticket is the response: the address for the bytes, unless the service fetches them.
type Ticket struct {
	FileID   uuid.UUID `json:"file_id"`
	Status   Status    `json:"status"`
	Filename string    `json:"filename"` // the stored filename
	Upload   *Target   `json:"upload,omitempty"`
	MaxSize  int64     `json:"max_size"`
	Replayed bool      `json:"-"` // the same request has made it before
}

// Target describes the request that uploads the bytes of a file.
type Target struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt time.Time         `json:"expires_at"`
}

// Create creates a ticket. For a repeated request, identified by its Idempotency-Key, it returns
// the existing ticket.
func (s *Store) Create(ctx context.Context, n Request) (Ticket, error) {
	n.Filename = Name(n.Filename)
	if err := s.checkTicket(&n); err != nil {
		return Ticket{}, err
	}
	var size int64
	if n.Size != nil {
		size = *n.Size
	}
	if err := s.fitsStorage(ctx, n.Workspace, size); err != nil {
		return Ticket{}, err
	}
	var row db.File
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		row, err = s.insertTicket(ctx, s.q.WithTx(tx), n)
		return err
	})
	replayed := errors.Is(err, errRepeated)
	if replayed {
		row, err = s.repeatedTicket(ctx, n)
	}
	if err != nil {
		return Ticket{}, err
	}
	t := Ticket{FileID: row.ID, Status: StatusPending, Filename: row.Filename, MaxSize: MaxSize, Replayed: replayed}
	if n.OriginURL != "" {
		t.Status = StatusFetching
		s.wakeFetchers()
		return t, nil
	}
	l := link{http.MethodPut, row.WorkspaceID, row.ID, row.UploadUntil.Truncate(time.Second)}
	t.Upload = &Target{Method: l.method, URL: s.signLink(l), Headers: map[string]string{"Content-Type": n.MIME}, ExpiresAt: l.expires.UTC()}
	return t, nil
}

// checkTicket rejects every request that can be rejected before any byte arrives.
func (s *Store) checkTicket(n *Request) error {
	if n.Size != nil && *n.Size > MaxSize {
		return &fault.Error{Code: fault.FileTooLarge, Param: "size", Message: fmt.Sprintf("A file has at most %d bytes.", MaxSize)}
	}
	if n.MIME != "" {
		declared := normalizeType(n.MIME)
		if declared == "" {
			return fault.Invalid(fault.Violation{Param: "/mime", Rule: "format", Message: "mime is no media type, like text/csv."})
		}
		n.MIME = declared
	}
	if err := checkPermitted(n.Filename, n.MIME, n.Unrestricted); err != nil {
		return err
	}
	if n.OriginURL == "" {
		return nil
	}
	reason := "This service fetches no files."
	if s.opt.Guard != nil {
		err := s.opt.Guard.CheckURL(n.OriginURL)
		if err == nil {
			return nil
		}
		reason = "The URL cannot be fetched."
		if refused, ok := errors.AsType[*egress.Error](err); ok {
			reason = refused.Reason
		}
	}
	return &fault.Error{Code: fault.InvalidOriginURL, Param: "origin_url", Message: strings.Replace(reason, "The URL", "origin_url", 1)}
}

var errRepeated = errors.New("the request was sent before")

func (s *Store) insertTicket(ctx context.Context, q *db.Queries, n Request) (db.File, error) {
	p := db.FileInsertParams{
		ID: uuid.Must(uuid.NewV7()), WorkspaceID: n.Workspace, State: string(StatusPending), Filename: n.Filename, Mime: n.MIME,
		Size: n.Size, Sha256: n.SHA256,
		Unrestricted: n.Unrestricted, KeyID: &n.Key, UploadSeconds: UploadTime.Seconds(),
	}
	if n.OriginURL != "" {
		origin, err := s.keys.Seal([]byte(n.OriginURL), originPurpose, n.Workspace.String(), p.ID.String())
		if err != nil {
			return db.File{}, fmt.Errorf("seal origin_url: %w", err)
		}
		p.State, p.Origin = string(StatusFetching), origin
	}
	if n.Once != "" {
		p.IdempotencyKey, p.RequestHash = &n.Once, n.Hash
		if err := q.FileForget(ctx, n.Workspace, n.Once); err != nil {
			return db.File{}, fmt.Errorf("forget an old idempotency key: %w", err)
		}
	}
	row, err := q.FileInsert(ctx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, errRepeated
	}
	if err != nil {
		return row, fmt.Errorf("insert file: %w", err)
	}
	if n.OriginURL == "" {
		return row, nil
	}
	fetching, err := q.FilesFetching(ctx, n.Workspace) // includes this one
	if err != nil {
		return row, fmt.Errorf("count fetches: %w", err)
	}
	if fetching > MaxFetching {
		return row, &fault.Error{Code: fault.QueueFull, Detail: fault.Detail{RetryAfter: 10 * time.Second},
			Message: fmt.Sprintf("%d files of this workspace are being fetched already. Wait for one of them.", MaxFetching)}
	}
	return row, nil
}

// repeatedTicket returns the ticket of the same request.
func (s *Store) repeatedTicket(ctx context.Context, n Request) (db.File, error) {
	row, err := s.q.FileOnce(ctx, n.Workspace, n.Once)
	if err != nil {
		return row, fmt.Errorf("read idempotency key: %w", err)
	}
	if !bytes.Equal(row.RequestHash, n.Hash) {
		return row, &fault.Error{Code: fault.IdempotencyKeyReused, Param: "Idempotency-Key",
			Message: "This Idempotency-Key was used with another request. Use a new key for a new file; to retry, send the same request unchanged."}
	}
	if row.KeyID == nil || *row.KeyID == n.Key {
		return row, nil
	}
	ok, err := s.q.APIKeySucceeds(ctx, n.Key, n.Workspace, *row.KeyID)
	if err != nil {
		return row, fmt.Errorf("follow the rotation of a key: %w", err)
	}
	if !ok {
		return row, &fault.Error{Code: fault.IdempotencyKeyReused, Param: "Idempotency-Key",
			Message: "This Idempotency-Key was used with another API key. Use a new key for a new file; to retry, use the API key of " +
				"the first attempt."}
	}
	return row, nil
}
