// Package call has one call of a method of A2A: its envelope, its version, the task
// that it names, and its errors.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/filestore"
)

// Call is one call of a method.
type Call struct {
	*server.Server
	W       http.ResponseWriter
	R       *http.Request
	Caller  server.Caller
	Base    string // public address of the service
	Version *Version
	ID      json.RawMessage // as it was sent
	Method  string
	Streams bool // the method answers with a stream
	Plain   bool // the transport is HTTP+JSON: results and errors have no envelope of JSON-RPC
	Params  request.Fields
	Parser  message.Parser
}

// Workspace returns the workspace of the caller.
func (c *Call) Workspace() uuid.UUID { return c.Caller.Workspace.ID }

// BriefContext limits the call's waits for the database.
func (c *Call) BriefContext() (context.Context, context.CancelFunc) { return c.Brief(c.R.Context()) }

// View reads a task's turn.
func (c *Call) View(ctx context.Context, id uuid.UUID) (session.View, error) {
	v, err := c.Sessions.Turn(ctx, c.Workspace(), id)
	if errors.Is(err, session.ErrNoTurn) {
		err = rpc.NoTask(id.String())
	}
	return v, err
}

// Show returns a task, with fresh addresses of its files.
func (c *Call) Show(ctx context.Context, v session.View, s task.Shape) (*task.Task, error) {
	files, err := c.FilesOf(ctx, v)
	return task.Of(c.Base, v, files, s), err
}

// FilesOf returns the files of a task.
func (c *Call) FilesOf(ctx context.Context, v session.View) (filestore.Files, error) {
	files, err := c.Files.OfTurns(ctx, c.Workspace(), []uuid.UUID{v.Turn.ID})
	return files[v.Turn.ID], err
}

// Read reads the current state of a task.
func (c *Call) Read(id uuid.UUID) (session.View, error) {
	ctx, stop := c.BriefContext()
	defer stop()
	return c.View(ctx, id)
}
