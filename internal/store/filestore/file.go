package filestore

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
)

// Status is the state of a file.
type Status string

const (
	StatusPending  Status = "pending"  // waits for its bytes
	StatusFetching Status = "fetching" // the service fetches its bytes
	StatusReady    Status = "ready"
	StatusRejected Status = "rejected" // the bytes differ from the declaration, or could not be fetched
	StatusExpired  Status = "expired"  // the bytes did not arrive in time
)

// Direction is the origin of a file.
type Direction string

const (
	In  Direction = "in"  // a caller has sent it
	Out Direction = "out" // a turn has produced it
)

// File is the metadata of a file.
type File struct {
	FileID    uuid.UUID  `json:"file_id"`
	Status    Status     `json:"status"`
	Direction Direction  `json:"direction"`
	Filename  string     `json:"filename"`
	MIME      *string    `json:"mime"` // null: not known yet, as are size and hash
	Size      *int64     `json:"size"`
	SHA256    *string    `json:"sha256"`
	SessionID *uuid.UUID `json:"session_id"` // the session that produced it
	TurnID    *uuid.UUID `json:"turn_id"`
	Error     *Problem   `json:"error"` // why it was rejected
	CreatedAt time.Time  `json:"created_at"`
}

// Problem is the reason why a file was rejected.
type Problem struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// Download is a file and an address that opens it.
type Download struct {
	event.File
	FileID    uuid.UUID `json:"file_id"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Page is one page of a list. NextCursor is the cursor of the next page if HasMore.
type Page struct {
	Data       []File  `json:"data"`
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// Get reads the metadata of a file, or fails with FILE_NOT_FOUND.
func (s *Store) Get(ctx context.Context, workspace, id uuid.UUID) (File, error) {
	row, err := s.fileRow(ctx, workspace, id)
	if err != nil {
		return File{}, err
	}
	now, err := s.databaseTime(ctx, s.q)
	return fileOf(row, now), err
}

// List returns one page of a workspace's files, newest first; direction "" means both. A cursor
// that this list did not make is INVALID_CURSOR.
func (s *Store) List(ctx context.Context, workspace uuid.UUID, direction Direction, limit int, cursor string) (Page, error) {
	before, err := decodeCursor(cursor, workspace, direction)
	if err != nil {
		return Page{}, err
	}
	var only *string
	if direction != "" {
		only = new(string(direction))
	}
	rows, err := s.lists.FilesPage(ctx, workspace, before, only, int32(limit)+1)
	if err != nil {
		return Page{}, fmt.Errorf("list files: %w", err)
	}
	now, err := s.databaseTime(ctx, s.q)
	if err != nil {
		return Page{}, err
	}
	page := Page{Data: make([]File, min(len(rows), limit))}
	for i := range page.Data {
		page.Data[i] = fileOf(rows[i], now)
	}
	if len(rows) > limit {
		page.HasMore, page.NextCursor = true, new(cursorOf(rows[limit-1].ID, workspace, direction))
	}
	return page, nil
}

// Download returns a signed address for a file that is ready, or fails with FILE_NOT_FOUND.
func (s *Store) Download(ctx context.Context, workspace, id uuid.UUID) (Download, error) {
	row, err := s.fileRow(ctx, workspace, id)
	if err != nil {
		return Download{}, err
	}
	if row.State != string(StatusReady) {
		return Download{}, fault.New(fault.FileNotFound, "The file is not ready for download.")
	}
	now, err := s.databaseTime(ctx, s.q)
	return s.downloadOf(row, now), err
}

// Downloads lists the files that a session has produced, newest first, each with an address. A turn
// or a filename filters the list.
func (s *Store) Downloads(ctx context.Context, workspace, session uuid.UUID, turn *uuid.UUID, filename *string) ([]Download, error) {
	rows, err := s.q.FilesProduced(ctx, db.FilesProducedParams{WorkspaceID: workspace, SessionID: session, TurnID: turn, Filename: filename,
		N: MaxDownloads})
	if err != nil {
		return nil, fmt.Errorf("list produced files: %w", err)
	}
	now, err := s.databaseTime(ctx, s.q)
	if err != nil {
		return nil, err
	}
	list := make([]Download, len(rows))
	for i, r := range rows {
		list[i] = s.downloadOf(r, now)
	}
	return list, nil
}

func (s *Store) downloadOf(r db.File, now time.Time) Download {
	f, expires := s.shownFile(r, now)
	return Download{File: f, FileID: r.ID, CreatedAt: r.CreatedAt.UTC(), ExpiresAt: expires.UTC()}
}

// shownFile returns a ready file as streams and messages show it.
func (s *Store) shownFile(r db.File, now time.Time) (event.File, time.Time) {
	address, expires := s.downloadLink(r.WorkspaceID, r.ID, now)
	return event.File{Filename: r.Filename, MIME: r.Mime, Size: *r.Size, DownloadURL: address}, expires
}

func fileOf(r db.File, now time.Time) File {
	f := File{
		FileID: r.ID, Status: Status(r.State), Direction: Direction(r.Direction), Filename: r.Filename, Size: r.Size,
		SessionID: r.SessionID, TurnID: r.TurnID, CreatedAt: r.CreatedAt.UTC(),
	}
	if r.Mime != "" {
		f.MIME = &r.Mime
	}
	if r.Sha256 != nil {
		f.SHA256 = new(hex.EncodeToString(r.Sha256))
	}
	if f.Status == StatusPending && now.After(r.UploadUntil.Add(skew)) {
		f.Status = StatusExpired
	}
	if r.Code != nil && r.Reason != nil {
		f.Error = &Problem{*r.Code, *r.Reason}
	}
	return f
}

// cursorOf returns a cursor, which is opaque to callers: the end of a page, and a checksum over
// that and the owner of the list. The checksum detects mistakes; it protects nothing.
func cursorOf(last, workspace uuid.UUID, direction Direction) string {
	sum := crc32.ChecksumIEEE(append(append(append([]byte{}, last[:]...), workspace[:]...), direction...))
	return base64url.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}) + base64url.EncodeToString(last[:])
}

// decodeCursor decodes a cursor; "" is the beginning.
func decodeCursor(cursor string, workspace uuid.UUID, direction Direction) (uuid.UUID, error) {
	if cursor == "" {
		return uuid.Max, nil
	}
	if sum := base64url.EncodedLen(crc32.Size); len(cursor) == sum+base64url.EncodedLen(len(uuid.UUID{})) {
		if b, err := base64url.DecodeString(cursor[sum:]); err == nil && cursorOf(uuid.UUID(b), workspace, direction) == cursor {
			return uuid.UUID(b), nil
		}
	}
	return uuid.Nil, &fault.Error{Code: fault.InvalidCursor, Param: "cursor",
		Message: "This cursor does not belong to this list. Take next_cursor of the page before, or begin without a cursor."}
}
