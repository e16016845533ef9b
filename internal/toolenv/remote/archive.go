package remote

import (
	"bufio"
	"context"

	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// sendChanges sends changes of a folder. The caller sends the endFrame, without which nothing of them
// counts.
func (f *frames) sendChanges(ctx context.Context, changes *workdir.Changes) error {
	w := bufio.NewWriterSize(pieces{f, folderFrame}, pieceSize)
	if err := changes.Pack(ctx, w); err != nil {
		return err
	}
	return w.Flush()
}

// receiveChanges applies the changes that the other side sends.
func (f *frames) receiveChanges(ctx context.Context, to *workdir.Mirror) error {
	a := &archive{frames: f}
	if err := to.Unpack(ctx, a); err != nil {
		return err
	}
	return a.close()
}
