package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/wiki"
)

// wikiChanges is the result of wiki sync: the paths of documents.
type wikiChanges struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Deleted   []string `json:"deleted"`
	Unchanged int      `json:"unchanged"`
	Extra     int      `json:"extra"` // documents without a file that stay
}

func (c *command) wikiSync() *cobra.Command {
	var to string
	var remove, yes bool
	cmd := &cobra.Command{
		Use:   "sync DIR",
		Short: "write the files of a directory as documents",
		Long: `Writes the Markdown files of a directory and of the directories below it as documents below
--to, and sends only those that differ. Hidden files are left out. A document that another writer
changes at the same time is not overwritten.`,
		Example: `  parley wiki sync handbook
  parley wiki sync handbook --delete              deletes the pages that the directory lacks
  parley wiki sync docs --to manuals/ --delete --yes`,
		Args: exactArguments("DIR"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			to = strings.TrimSuffix(to, "/") + "/"
			files, err := c.markdownFiles(c.resolvePath(args[0]), to)
			if err != nil {
				return err
			}
			docs, err := a.Documents(ctx, to)
			if err != nil {
				return err
			}
			done, err := c.writeChanged(ctx, a, files, docs)
			if err != nil {
				return err
			}
			extra := slices.DeleteFunc(docs, func(d client.Document) bool {
				_, has := files[d.Path]
				return has
			})
			if done.Extra = len(extra); remove {
				if err := c.deleteExtra(ctx, a, extra, yes, &done); err != nil {
					return err
				}
			}
			return c.printDone(done, "%d added, %d changed, %d deleted, %d unchanged%s.", len(done.Added), len(done.Changed),
				len(done.Deleted), done.Unchanged,
				extraNote(done.Extra))
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&to, "to", "wiki/", "folder of the documents")
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the documents of the folder that the directory lacks")
	yesFlag(cmd, &yes)
	return cmd
}

func extraNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d without a file: delete with --delete", n)
}

// markdownFiles returns the content of the Markdown files of a directory by the paths of their
// documents. It names and skips symbolic links: they may lead out of the directory.
func (c *command) markdownFiles(dir, to string) (map[string]string, error) {
	const unchanged = " Nothing was changed."
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &problem{Exit: exitUsage, Code: "USAGE", What: dir + " is not a directory.",
			Why: "wiki sync takes a directory of Markdown files.",
			Do:  "Write a single file: parley wiki put PATH FILE." + unchanged}
	}
	rejected := func(name, what, why, do string) error {
		return &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("The file %s %s.", name, what), Why: why,
			Do: do + ", and run the command again." + unchanged}
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, unreadableError(err)
	}
	files := make(map[string]string)
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err // d is nil for a directory that does not exist
		}
		switch hidden := strings.HasPrefix(d.Name(), ".") && name != root; {
		case hidden && d.IsDir():
			return filepath.SkipDir
		case hidden || d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			c.printNote("Skipped %s: it is a symbolic link.", name)
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !isDocumentText(content) {
			return rejected(name, "is not text in UTF-8", "Documents are text in UTF-8.", "Convert it")
		}
		if len(content) > wiki.MaxContent {
			return rejected(name, fmt.Sprintf("has %d bytes", len(content)), fmt.Sprintf("A document has at most %d bytes.",
				wiki.MaxContent), "Split it")
		}
		files[to+filepath.ToSlash(rel)] = string(content)
		return nil
	})
	if err == nil && len(files) == 0 {
		return nil, &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("The directory %s has no Markdown files.", dir),
			Why: "The names of their files end with .md.",
			Do:  "Check the directory." + unchanged}
	}
	if _, explained := errors.AsType[*problem](err); err != nil && !explained {
		err = unreadableError(err)
	}
	return files, err
}

// writeChanged writes the files whose documents differ or do not exist, in the order of their paths.
func (c *command) writeChanged(ctx context.Context, a *administration, files map[string]string,
	docs []client.Document) (wikiChanges, error) {
	done := wikiChanges{Added: []string{}, Changed: []string{}, Deleted: []string{}}
	stored := make(map[string]client.Document, len(docs))
	for _, d := range docs {
		stored[d.Path] = d
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		d, exists := stored[path]
		if sum := sha256.Sum256([]byte(content)); exists && d.SHA256 == hex.EncodeToString(sum[:]) {
			done.Unchanged++
			continue
		}
		if _, err := a.PutDocument(ctx, path, content, fmt.Sprintf(`"%d"`, d.Version)); err != nil {
			return done, fmt.Errorf("%s: %w", path, err)
		}
		verb := "Changed"
		if exists {
			done.Changed = append(done.Changed, path)
		} else {
			verb, done.Added = "Added", append(done.Added, path)
		}
		c.noteChange(verb, path)
	}
	return done, nil
}

// deleteExtra deletes documents, after consent.
func (c *command) deleteExtra(ctx context.Context, a *administration, extra []client.Document, yes bool, done *wikiChanges) error {
	if len(extra) == 0 {
		return nil
	}
	slices.SortFunc(extra, func(a, b client.Document) int { return cmp.Compare(a.Path, b.Path) })
	if !yes {
		for _, d := range extra {
			fmt.Fprintln(c.Stderr, plainLine(d.Path))
		}
	}
	question := fmt.Sprintf("Delete %d document%s permanently?", len(extra), pluralize(len(extra), "", "s"))
	if err := c.requireConsent(yes, question, "No document was deleted."); err != nil {
		return err
	}
	for _, d := range extra {
		if err := a.DeleteDocument(ctx, d.Path); err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
		done.Deleted = append(done.Deleted, d.Path)
		done.Extra--
		c.noteChange("Deleted", d.Path)
	}
	return nil
}

// noteChange prints a line about a document, if the output is for a reader.
func (c *command) noteChange(verb, path string) {
	if !c.json {
		c.printNote("%s %s.", verb, plainLine(path))
	}
}
