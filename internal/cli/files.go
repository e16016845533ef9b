package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/filestore"
)

func (c *command) filesCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "files",
		Aliases: []string{"file"},
		Short:   "manage the files of a workspace",
		Example: `  parley files upload report.pdf
  parley files list
  parley files download --session 0192f0aa-0000-7000-8000-000000000001 -o results`,
	}, c.filesUp(), c.filesDown(), c.filesList())
}

func (c *command) filesUp() *cobra.Command {
	var mime string
	cmd := &cobra.Command{
		Use:     "upload FILE…",
		Aliases: []string{"up"},
		Short:   "upload files and print their ids",
		Example: `  parley files upload report.pdf
  parley files upload *.csv
  parley files upload --mime application/zip archive.bin --json`,
		Args: atLeast("FILE"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			var sent []json.RawMessage
			for _, name := range args {
				f, err := c.sendFile(ctx, remote, name, mime)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.Stderr, "Sent %s, %d bytes of %s.\n", plainLine(f.Filename), f.Size, f.MIME)
				if sent = append(sent, f.Raw); !c.json {
					fmt.Fprintln(c.Stdout, f.FileID)
				}
			}
			if c.json {
				return c.printData(sent)
			}
			return nil
		}),
	}
	remoteFlags(cmd)
	cmd.Flags().StringVar(&mime, "mime", "", "what they are, such as text/csv; found out where it is not given")
	return cmd
}

// sendFile reads a file twice: for its hash, and to send it.
func (c *command) sendFile(ctx context.Context, remote *client.Client, name, mime string) (client.File, error) {
	if !utf8.ValidString(filepath.Base(name)) {
		return client.File{}, &problem{Exit: exitUsage, Code: "USAGE", What: "The name of " + name + " is not UTF-8.",
			Why: "A file is sent under its name, which is text.", Do: "Give it another name."}
	}
	f, err := os.Open(c.resolvePath(name))
	if err != nil {
		return client.File{}, unreadableError(err)
	}
	defer f.Close()
	head := make([]byte, 256<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return client.File{}, unreadableError(err)
	}
	hash := sha256.New()
	hash.Write(head[:n])
	rest, err := io.Copy(hash, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return client.File{}, unreadableError(err)
	}
	if mime == "" {
		mime = filestore.Type(name, head[:n])
	}
	return remote.SendFile(ctx, client.NewFile{
		Filename: filepath.Base(name), MIME: mime, Size: int64(n) + rest, SHA256: hex.EncodeToString(hash.Sum(nil)),
	}, f)
}

func (c *command) filesDown() *cobra.Command {
	var q client.DownloadQuery
	var dir string
	cmd := &cobra.Command{
		Use:     "download [ID]",
		Aliases: []string{"down"},
		Short:   "download a file or the output of a session",
		Example: `  parley files download 0192f0aa-0000-7000-8000-000000000003
  parley files download --session 0192f0aa-0000-7000-8000-000000000001 -o results
  parley files download --session 0192f0aa-0000-7000-8000-000000000001 --name report.csv`,
		Args: atLeastArguments(0, "ID"),
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (q.Session != "") {
				return usageError(cmd, "Which files?", "Name one by its ID, or those of a session by --session.")
			}
			return nil
		},
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			if len(args) == 1 {
				q.File = args[0]
			}
			list, err := remote.Downloads(ctx, q)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return &problem{Exit: exitFailed, Code: "NO_FILES", What: "No files match.", Why: "The session has produced no such files.",
					Do: "parley files list shows the files."}
			}
			return c.saveFiles(ctx, remote, list, dir)
		}),
	}
	remoteFlags(cmd)
	cmd.Flags().StringVar(&q.Session, "session", "", "all files that this session has produced")
	cmd.Flags().StringVar(&q.Turn, "turn", "", "with --session: only of this turn")
	cmd.Flags().StringVar(&q.Filename, "name", "", "with --session: only files of this name")
	cmd.Flags().StringVarP(&dir, "dir", "o", ".", "the directory to write to; it is created if needed")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// saveFiles writes files into a directory and never outside it. It overwrites no file.
func (c *command) saveFiles(ctx context.Context, remote *client.Client, list []client.Download, dir string) error {
	if err := os.MkdirAll(c.resolvePath(dir), 0o777); err != nil {
		return unwritableError(err)
	}
	root, err := os.OpenRoot(c.resolvePath(dir))
	if err != nil {
		return unwritableError(err)
	}
	defer root.Close()
	saved := make([]object, 0, len(list))
	for _, d := range list {
		f, err := createFile(root, filestore.Name(d.Filename)) // the server has sanitized it, but this is a local disk
		if err != nil {
			return unwritableError(err)
		}
		name := filepath.Base(f.Name())
		err = remote.Fetch(ctx, d, f)
		if err = errors.Join(err, f.Close()); err != nil {
			_ = root.Remove(name)
			return err
		}
		saved = append(saved, object{"path": filepath.Join(dir, name)})
		if !c.json {
			fmt.Fprintln(c.Stdout, filepath.Join(dir, name))
		}
	}
	if c.json {
		return c.printData(saved)
	}
	return nil
}

// createFile creates a new file: "report.csv", else "report (2).csv" …
func createFile(root *os.Root, name string) (*os.File, error) {
	ext := path.Ext(name)
	for n := 1; ; n++ {
		as := name
		if n > 1 {
			as = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(name, ext), n, ext)
		}
		f, err := root.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func (c *command) filesList() *cobra.Command {
	var q client.FileQuery
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list files",
		Example: `  parley files list
  parley files list --direction out
  parley files list --json`,
		Args: nothing,
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, _ []string) error {
		page, err := remote.Files(ctx, q)
		if err != nil {
			return err
		}
		return printPage(c, cmd, page, "No files match. Send one: parley files upload FILE",
			[]string{"FILE", "STATUS", "DIRECTION", "NAME", "TYPE", "SIZE", "CREATED"}, func(f client.File) []string {
				return []string{f.FileID, f.Status, f.Direction, shortText(f.Filename, 40), f.MIME, fmt.Sprint(f.Size), formatDay(&f.CreatedAt)}
			})
	})
	c.addPageFlags(cmd, &q.Limit, &q.Cursor)
	cmd.Flags().StringVar(&q.Direction, "direction", "", "only in (sent to the workspace) or out (produced by the agent)")
	return cmd
}
