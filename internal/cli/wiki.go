package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) wikiCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "wiki",
		Short: "manage the documents of a workspace",
		Example: `  parley wiki put wiki/onboarding.md onboarding.md
  parley wiki list
  parley wiki show wiki/onboarding.md`,
	}, c.wikiPut(), c.wikiSync(), c.wikiGet(), c.wikiList(), c.wikiDelete())
}

func (c *command) wikiPut() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "put PATH [FILE]...",
		Short: "write a document from a file or stdin, or several into a folder",
		Example: `  parley wiki put wiki/onboarding.md onboarding.md
  parley wiki put policies/ travel.txt hotels.txt   below policies/, by their names
  git log --oneline | parley wiki put wiki/changes.md`,
		Args: putArguments,
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if strings.HasSuffix(args[0], "/") && len(args) > 1 {
				return c.putInFolder(ctx, a, args[0], args[1:])
			}
			content, err := c.readDocument(args[1:])
			if err != nil {
				return err
			}
			d, err := a.PutDocument(ctx, args[0], string(content), "")
			if err != nil {
				return err
			}
			return c.printDone(withoutContent(d), "Wrote %s, version %d: %q.", d.Path, d.Version, d.Title)
		}),
	})
}

// putArguments checks the arguments of put: several files need a folder.
func putArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 2 && !strings.HasSuffix(args[0], "/") && !slices.Contains(args, "") {
		return usageError(cmd, fmt.Sprintf("%q is not a folder.", args[0]), "With several files, PATH ends with a slash, such as wiki/.")
	}
	return atLeastArguments(1, "PATH", "FILE")(cmd, args[:min(2, len(args))])
}

// putInFolder writes files below a folder by their names.
func (c *command) putInFolder(ctx context.Context, a *administration, folder string, files []string) error {
	written := make([]client.Document, len(files))
	for i, file := range files {
		content, err := c.readDocument([]string{file})
		if err != nil {
			return err
		}
		if written[i], err = a.PutDocument(ctx, folder+filepath.Base(file), string(content), ""); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		written[i] = withoutContent(written[i])
		if !c.json {
			c.printNote("Wrote %s, version %d: %q.", written[i].Path, written[i].Version, written[i].Title)
		}
	}
	if c.json {
		return c.printData(object{"documents": written})
	}
	return nil
}

// readDocument returns the content to write, from a file or from stdin.
func (c *command) readDocument(args []string) (content []byte, err error) {
	const limit = 2 << 20 // the store's limit is lower, and its error explains it
	name, source := "stdin", c.Stdin
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(c.resolvePath(args[0]))
		if err != nil {
			return nil, unreadableError(err)
		}
		defer f.Close()
		name, source = "The file "+args[0], f
	} else if !isFed(c.Stdin) {
		return nil, &problem{Exit: exitUsage, Code: "USAGE", What: "The content is missing.",
			Why: "No file is named and nothing is piped in.", Do: "Name a file: parley wiki put PATH FILE"}
	}
	content, err = io.ReadAll(io.LimitReader(source, limit))
	if err == nil && len(content) < limit && !isDocumentText(content) {
		return nil, &problem{Exit: exitUsage, Code: "USAGE", What: plainLine(name) + " is not text in UTF-8.",
			Why: "Documents are text in UTF-8.", Do: "Convert it and run the command again."}
	}
	return content, err
}

// isDocumentText reports whether a document can have this content.
func isDocumentText(content []byte) bool {
	return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0
}

func (c *command) wikiGet() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "show PATH",
		Aliases: []string{"get"},
		Short:   "show a document",
		Example: `  parley wiki show wiki/onboarding.md
  parley wiki show policies/travel.txt > travel.txt`,
		Args: exactArguments("PATH"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			d, err := a.Document(ctx, args[0])
			if err != nil {
				return err
			}
			return c.printText(d.Content, writtenDocument{d, d.Content})
		}),
	})
}

func (c *command) wikiDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete PATH",
		Short: "delete a document",
		Example: `  parley wiki delete wiki/onboarding.md
  parley wiki delete policies/travel.txt --yes      without asking`,
		Args: exactArguments("PATH"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			d, err := a.Document(ctx, args[0])
			if err != nil {
				return err
			}
			if err := c.requireConsent(yes, fmt.Sprintf("Delete %s, %q, permanently?", d.Path, d.Title), "Nothing was deleted."); err != nil {
				return err
			}
			if err := a.DeleteDocument(ctx, args[0]); err != nil {
				return err
			}
			return c.printDone(object{"path": args[0]}, "Deleted %s.", plainLine(args[0]))
		}),
	}
	workspaceFlag(cmd)
	yesFlag(cmd, &yes)
	return cmd
}

// writtenDocument is a document in --json, with its content.
type writtenDocument struct {
	client.Document
	Content string `json:"content"` // even if it is empty
}

func withoutContent(d client.Document) client.Document {
	d.Content = ""
	return d
}

func (c *command) wikiList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list [PREFIX]",
		Short: "list documents",
		Example: `  parley wiki list
  parley wiki list policies/ --json`,
		Args: atLeastArguments(0, "PREFIX"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			prefix := ""
			if len(args) > 0 {
				prefix = args[0]
			}
			docs, err := a.Documents(ctx, prefix)
			if err != nil {
				return err
			}
			return c.printList(docs, len(docs), "No documents. Write one: parley wiki put wiki/NAME.md FILE",
				[]string{"PATH", "TITLE", "SIZE", "VERSION", "CHANGED"}, func(i int) []string {
					d := docs[i]
					return []string{d.Path, d.Title, strconv.Itoa(d.Size), strconv.Itoa(d.Version), formatDay(&d.UpdatedAt)}
				})
		}),
	})
}

// resolvePath resolves a file name against the command's directory.
func (c *command) resolvePath(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.Dir, name)
}

// unreadableError describes an error of a file or a directory, with its name and the system's reason.
func unreadableError(err error) error {
	what, reason := "The file", err
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		what, reason = at.Path, at.Err
	}
	return &problem{Exit: exitUsage, Code: "USAGE", What: what + " cannot be read.", Why: errorSentence(reason),
		Do: "Check its name and its rights."}
}
