package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/chain"
)

func (c *command) auditHead() *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "print the signed head of the log",
		Example: `  parley audit head >> heads.jsonl
  parley audit head --json`,
		Long: `Prints the number, hash and signature of the newest link as one line of JSON. Store it where the owner
of the database cannot write: parley audit verify --heads FILE then shows a log that was rewritten
or cut off later. A server with PARLEY_AUDIT_HEADS stores heads in files, buckets and at webhooks by
itself.`,
		Args: nothing,
		RunE: c.onReadDatabase(func(ctx context.Context, a *admin, _ []string) error {
			head, ok, err := a.Chain.Head(ctx)
			if err != nil {
				return err
			}
			if !ok {
				return &problem{Exit: exitFailed, Code: "FAILED", What: "The log has no links yet.",
					Why: "No turn has ended since the database has the chain, or no server runs.",
					Do:  "Run it again some seconds after the end of a turn."}
			}
			line, err := json.Marshal(head)
			if err != nil {
				return err
			}
			return c.printText(string(line)+"\n", object{"head": head})
		}),
	}
}

func (c *command) auditPublicKey() *cobra.Command {
	return &cobra.Command{
		Use:   "public-key",
		Short: "print the public keys of the log's signatures",
		Example: `  parley audit public-key > parley.pub
  parley audit public-key --json`,
		Long: `Prints the public key that belongs to each master key of PARLEY_VAULT_KEY_FILE, one a line. Keep them
apart from the database: with them, parley audit verify needs no master key.`,
		Args: nothing,
		RunE: c.onReadDatabase(func(ctx context.Context, a *admin, _ []string) error {
			ring, err := a.Keyring(ctx)
			if err != nil {
				return err
			}
			keys := chain.PublicKeysOf(ring)
			lines, text := make([]string, 0, len(keys)), ""
			for _, id := range ring.IDs() {
				lines = append(lines, chain.FormatPublicKey(id, keys[id]))
				text += lines[len(lines)-1] + "\n"
			}
			return c.printText(text, object{"public_keys": lines})
		}),
	}
}

// maxFindings is how many differences verify lists.
const maxFindings = 20

func (c *command) auditVerify() *cobra.Command {
	var session, since, headsFile, publicKey string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "compare the log with its signed digests",
		Example: `  parley audit verify
  aws s3 cp --recursive s3://bucket/heads heads && parley audit verify --heads heads --public-key @parley.pub
  parley audit verify --session 0192f0aa-0000-7000-8000-000000000001`,
		Long: `Reports each event that was changed, removed, inserted or moved since its digest was signed, and exits
with 1 if there is one. It also exits with 1 if it compares no link, for example because --since is in
the future. The first difference is listed first. --heads compares the log with heads that were
stored outside of the database, which also shows a history that the owner of the database has
rewritten or cut off. Without --public-key the public keys come from PARLEY_VAULT_KEY_FILE. The
command only reads, and may run on a copy of the database. docs/guides/integrity.md describes what
the digests cover.`,
		Args: nothing,
	}
	cmd.RunE = c.onReadDatabase(func(ctx context.Context, a *admin, _ []string) error {
		v := chain.Verification{Progress: c.progressOfLinks(time.Now())}
		torn := make([]tornHead, 0)
		var err error
		if v.Keys, err = c.verifyingKeys(ctx, cmd, a, publicKey); err != nil {
			return err
		}
		if session != "" {
			id, err := uuid.Parse(session)
			if err != nil {
				return noSessionID(session)
			}
			v.Session = &id
		}
		if cmd.Flags().Changed("workspace") {
			ws, err := selectWorkspace(ctx, a)
			if err != nil {
				return err
			}
			v.Workspace = &ws.ID
		}
		if since != "" {
			at, err := time.Parse(time.RFC3339, since)
			if err != nil {
				if at, err = time.Parse(time.DateOnly, since); err != nil {
					return usageError(cmd, fmt.Sprintf("%q is not a time.", since),
						"--since takes a day such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z.")
				}
			}
			v.Since = &at
		}
		if headsFile != "" {
			if v.Heads, torn, err = c.readHeads(cmd, headsFile); err != nil {
				return err
			}
		}
		return c.verifyLog(ctx, a, v, torn)
	})
	cmd.Flags().StringVar(&session, "session", "", "only this session")
	cmd.Flags().StringVar(&since, "since", "", "only digests that were signed after this day or time")
	cmd.Flags().StringVar(&headsFile, "heads", "", "file or directory with heads that were stored outside of the database, or - for stdin")
	cmd.Flags().StringVar(&publicKey, "public-key", "", "trusted public keys, or @FILE")
	_ = cmd.MarkFlagFilename("heads")
	workspaceFlag(cmd)
	return cmd
}

// verifyingKeys returns the keys of --public-key, else those of the vault.
func (c *command) verifyingKeys(ctx context.Context, cmd *cobra.Command, a *admin, flag string) (chain.PublicKeys, error) {
	if flag == "" {
		ring, err := a.Keyring(ctx)
		if err != nil {
			return nil, err
		}
		return chain.PublicKeysOf(ring), nil
	}
	text, err := c.flagArgument(flag)
	if err != nil {
		return nil, err
	}
	keys, err := chain.ParsePublicKeys(text)
	if err != nil {
		return nil, usageError(cmd, "The public key is invalid.", err.Error()+".")
	}
	return keys, nil
}

// tornHead is the place of a head whose end a crash has cut off.
type tornHead struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// readHeads reads the heads of a file, of all files below a directory, or with "-" of stdin.
func (c *command) readHeads(cmd *cobra.Command, path string) (all []chain.Head, torn []tornHead, err error) {
	torn = make([]tornHead, 0)
	parse := func(name string, r io.Reader) error {
		heads, lines, err := chain.ParseHeads(r)
		if err != nil {
			return usageError(cmd, "The file of heads is invalid.", name+": "+err.Error()+".")
		}
		all = append(all, heads...)
		for _, line := range lines {
			torn = append(torn, tornHead{name, line})
		}
		return nil
	}
	switch {
	case path != "-":
		err = parseFiles(c.resolvePath(path), parse)
	case c.Stdin != nil:
		err = parse("stdin", c.Stdin)
	}
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return nil, nil, unreadableError(err)
	}
	if err == nil && len(all) == 0 {
		why := "`parley audit head` prints one."
		if len(torn) > 0 {
			why = describeTorn(torn) + " " + why
		}
		return nil, nil, usageError(cmd, "No heads found in "+path+".", why)
	}
	return all, torn, err
}

// describeTorn reports the heads that were not compared, one a line.
func describeTorn(torn []tornHead) string {
	lines := make([]string, len(torn))
	for i, t := range torn {
		lines[i] = fmt.Sprintf("Ignored the head in line %d of %s: its end is missing.", t.Line, t.File)
	}
	return strings.Join(lines, "\n")
}

// parseFiles calls parse for a file, or for each file below a directory.
func parseFiles(path string, parse func(name string, r io.Reader) error) error {
	return filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		return parse(name, file)
	})
}

func (c *command) verifyLog(ctx context.Context, a *admin, v chain.Verification, torn []tornHead) error {
	found := make([]chain.Finding, 0)
	v.Found = func(f chain.Finding) error {
		if len(found) < maxFindings {
			found = append(found, f)
			if !c.json {
				fmt.Fprintf(c.Stdout, "%-9s  %s\n", f.Kind, f.Text)
			}
		}
		return nil
	}
	sum, err := a.Chain.Verify(ctx, v)
	if err != nil {
		return err
	}
	if sum.Links == 0 && sum.Findings == 0 {
		return notVerified(v)
	}
	text := describeVerification(sum, v.Heads, len(found))
	if len(torn) > 0 {
		text = describeTorn(torn) + "\n" + text
	}
	if err := c.printDone(object{"summary": sum, "findings": found, "ignored_heads": torn}, "%s", text); err != nil {
		return err
	}
	if sum.Findings > 0 {
		return exitError(exitFailed)
	}
	return nil
}

// notVerified explains why no link was compared.
func notVerified(v chain.Verification) *problem {
	p := &problem{Exit: exitFailed, Code: "NOT_VERIFIED", What: "Nothing was verified: no link of the log was compared.",
		Why: "No turn has ended since the database has the chain, no server runs, or all links were removed.",
		Do: "A running server makes links a few seconds after the end of each turn. Verify with heads that are stored elsewhere: " +
			"parley audit verify --heads FILE."}
	switch {
	case v.Session != nil:
		p.What = "Nothing was verified: no link covers the session " + v.Session.String() + "."
		p.Why = "It does not exist, no turn of it has ended, or its links were removed."
		p.Do = "Check the id, and verify the whole log with heads that are stored elsewhere: parley audit verify --heads FILE."
	case v.Workspace != nil:
		p.What = "Nothing was verified: no link covers the workspace."
		p.Why = "No turn of it has ended, or its links were removed."
	}
	if v.Since != nil {
		p.Why, p.Do = "No link was signed after "+v.Since.UTC().Format(time.RFC3339)+".", "Choose an earlier --since, or leave it out."
	}
	return p
}

func describeVerification(s chain.Summary, heads []chain.Head, listed int) string {
	text := fmt.Sprintf("Compared %d %s of %d %s. The chain covers all turns that ended before %s.",
		s.Events, pluralize(int(s.Events), "event", "events"), s.Links, pluralize(int(s.Links), "link", "links"), s.Upto.Format(time.RFC3339))
	if s.Links == 0 {
		text = "No link of the log was compared."
	}
	if s.Dropped > 0 {
		text += fmt.Sprintf("\nRetention has dropped %d more; their digests are intact.", s.Dropped)
	}
	if len(heads) == 0 {
		text += "\nWithout --heads this does not show whether links were removed at the end, or all of them: a server makes new ones."
	} else {
		newest := slices.MaxFunc(heads, func(a, b chain.Head) int { return cmp.Compare(a.Number, b.Number) })
		text += fmt.Sprintf(
			"\nCompared with %d %s. The newest is of link %d, from %s: this does not show whether later links were removed or rewritten.",
			s.Heads, pluralize(s.Heads, "head", "heads"), newest.Number, newest.At.Format(time.RFC3339))
	}
	if s.Findings > listed {
		return text + fmt.Sprintf("\n%d differences; the first %d are listed.", s.Findings, listed)
	}
	return text + fmt.Sprintf("\n%d %s.", s.Findings, pluralize(s.Findings, "difference", "differences"))
}

// progressOfLinks prints the progress of a long verification.
func (c *command) progressOfLinks(printed time.Time) func(done, total int64) {
	const every = 2 * time.Second
	return func(done, total int64) {
		if time.Since(printed) >= every {
			printed = time.Now()
			c.printNote("%d of %d links", done, total)
		}
	}
}
