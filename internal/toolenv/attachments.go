package toolenv

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/parley-server/parley/internal/store/filestore"
)

// saveAttachments writes the users' files where commands can see them.
func (x *Run) saveAttachments(ctx context.Context) error {
	if x.attachments != "" {
		return nil
	}
	sent, err := x.r.cfg.Files.Received(ctx, x.t.Workspace, x.t.Session, x.t.Turn)
	if err != nil || len(sent) == 0 {
		return err
	}
	dir, err := x.r.newDir(x.t.Turn.String() + "-attachments")
	if err != nil {
		return fmt.Errorf("make a folder for attachments: %w", err)
	}
	x.attachments = dir
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the attachments: %w", err)
	}
	defer root.Close()
	room, there := int64(filestore.MaxReceived), make(map[string]bool)
	for i := len(sent) - 1; i >= 0; i-- {
		f := sent[i]
		if room -= f.Content.Size; room < 0 {
			break
		}
		if there[f.Name] { // two messages included it
			continue
		}
		there[f.Name] = true
		if err := fetchAttachment(ctx, root, f); err != nil {
			return fmt.Errorf("bring an attachment: %w", err)
		}
	}
	return x.changeOwner(dir)
}

func fetchAttachment(ctx context.Context, root *os.Root, f filestore.Received) error {
	file, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, f.Content.Reader(ctx))
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
