package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/apikey"
)

func (c *command) keysCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "keys",
		Aliases: []string{"key"},
		Short:   "manage API keys",
		Example: `  parley keys create --name "web site" --scope chat --scope sessions:read --expires 90d
  parley keys list
  parley keys rotate 7F3kQ2zB --overlap 24h`,
	}, c.keysCreate(), c.keysList(), c.keysRotate(), c.keysRevoke(), c.webhookToken())
}

func (c *command) keysCreate() *cobra.Command {
	var name, expires string
	var scopes []string
	var granted apikey.Scopes
	var life *time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "create a key and print it once",
		Example: `  parley keys create --name "web site" --scope chat --scope sessions:read
  parley keys create --name ci --scope chat --expires 30d > ci.key
  parley keys create --name admin --scope all --scope admin --expires never`,
		Args: nothing,
		PreRunE: func(*cobra.Command, []string) (err error) {
			if name == "" {
				return &problem{Exit: exitUsage, Code: "USAGE", What: "The key needs a name.", Why: "Lists and logs call it by its name.",
					Do: "Give one: --name \"web site\"."}
			}
			if granted, err = apikey.ParseScopes(scopes); err != nil {
				return err
			}
			life, err = parseDuration(expires)
			return err
		},
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			grant := client.KeyGrant{Name: name, Scopes: granted.Strings()}
			if life != nil {
				grant.Life = *life
			}
			key, err := a.CreateKey(ctx, grant)
			if err != nil {
				return err
			}
			return c.printOnce(key.Text, key, "Created the key %s %q for %s with %s; it expires: %s.",
				key.ID, key.Name, a.slug, scopeNames(key.Scopes), formatDay(key.ExpiresAt))
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&name, "name", "", "what the key is for")
	cmd.Flags().StringSliceVar(&scopes, "scope", []string{"chat", "sessions:read"},
		"a scope of the key; may be repeated; all means every scope except admin and server:admin")
	cmd.Flags().StringVar(&expires, "expires", "90d", "when the key expires, such as 12h, 90d or 2w; or never")
	return cmd
}

// scopeNames lists scopes, with all for those that are usual.
func scopeNames(names []string) string {
	scopes := make(apikey.Scopes, len(names))
	for i, name := range names {
		scopes[i] = apikey.Scope(name)
	}
	return scopes.Names()
}

// keyHint shows a key by its beginning and its end.
func keyHint(k client.Key) string {
	return apikey.Key{ID: k.ID, Last4: k.Last4, Webhook: k.WebhookToken}.Hint()
}

func (c *command) keysList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list keys",
		Example: `  parley keys list
  parley keys list --workspace sales --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			keys, err := a.Keys(ctx)
			if err != nil {
				return err
			}
			now := time.Now()
			return c.printList(keys, len(keys), "The workspace "+a.slug+" has no keys. Make one: parley keys create --name NAME",
				[]string{"ID", "NAME", "OWNER", "KEY", "SCOPES", "STATUS", "EXPIRES", "LAST USED", "CREATED"}, func(i int) []string {
					k := keys[i]
					return []string{k.ID, k.Name, plainLine(cmp.Or(k.Owner, "-")), keyHint(k), scopeNames(k.Scopes), keyStatus(k, now),
						formatDay(k.ExpiresAt), formatDay(k.LastUsedAt),
						formatDay(&k.CreatedAt)}
				})
		}),
	})
}

func keyStatus(k client.Key, now time.Time) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && k.ExpiresAt.Before(now):
		return "expired"
	case k.ReplacedBy != nil:
		return "replaced by " + *k.ReplacedBy
	case k.Loopback:
		return "active, this machine only"
	}
	return "active"
}

func (c *command) keysRotate() *cobra.Command {
	var overlap string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "replace a key after an overlap",
		Example: `  parley keys rotate 7F3kQ2zB > new.key
  parley keys rotate 7F3kQ2zB --overlap 7d
  parley keys rotate 7F3kQ2zB --overlap now     the old key ends now`,
		Args: exactArguments("ID"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if overlap == "now" {
				overlap = "0s"
			}
			stay, err := parseDuration(overlap)
			if err != nil {
				return err
			}
			if stay == nil {
				return &problem{Exit: exitUsage, Code: "USAGE", What: "An overlap has an end.",
					Why: "--overlap never would leave two keys.", Do: "Give a time, such as 24h."}
			}
			key, err := a.RollKey(ctx, keyID(args[0]), *stay)
			if err != nil {
				return err
			}
			end := "ends now"
			if *stay > 0 {
				end = "works for another " + stay.String()
			}
			return c.printOnce(key.Text, key, "Created the key %s in place of %s, which %s.", key.ID, keyID(args[0]), end)
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "how long the old key stays valid, such as 1h, 24h or 7d; or now")
	return cmd
}

func (c *command) keysRevoke() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete ID",
		Aliases: []string{"revoke"},
		Short:   "revoke a key and close its streams",
		Example: `  parley keys delete 7F3kQ2zB
  parley keys delete 7F3kQ2zB --yes      without asking`,
		Args: exactArguments("ID"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if err := c.requireConsent(yes, fmt.Sprintf("Revoke the key %s?", plainLine(keyID(args[0]))), "No key was revoked."); err != nil {
				return err
			}
			if _, err := a.RevokeKey(ctx, keyID(args[0])); err != nil {
				return err
			}
			return c.printDone(object{"key_id": keyID(args[0])}, "Revoked the key %s.", keyID(args[0]))
		}),
	}
	yesFlag(cmd, &yes)
	return withWorkspace(cmd)
}

// keyID accepts an id with the text that lists print around it, and whole keys, from which it
// extracts the id.
func keyID(s string) string {
	s, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(s, "prl_"), "whtok_"), "…")
	return s[:min(len(s), 8)]
}

// longest is the maximum time to an expiry.
const longest = 100 * 365 * 24 * time.Hour

// parseDuration parses a time such as 2w, 90d or 12h; nil means never.
func parseDuration(s string) (*time.Duration, error) {
	if s == "never" {
		return nil, nil
	}
	bad := &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("%q is not a duration.", s),
		Why: "A duration is a number with a unit: 30m, 12h, 90d, 2w.", Do: "Write it so, or never."}
	unit, number := time.Duration(0), ""
	if days, ok := strings.CutSuffix(s, "d"); ok {
		unit, number = 24*time.Hour, days
	} else if weeks, ok := strings.CutSuffix(s, "w"); ok {
		unit, number = 7*24*time.Hour, weeks
	}
	d, err := time.ParseDuration(s)
	if unit > 0 {
		var n uint64
		n, err = strconv.ParseUint(number, 10, 64)
		if n > uint64(longest/unit) { // also for values that do not fit: err reports them
			n, err = uint64(longest/unit)+1, nil
		}
		d = time.Duration(n) * unit
	}
	switch {
	case err != nil || d < 0:
		return nil, bad
	case d > longest:
		bad.What, bad.Why, bad.Do = fmt.Sprintf("%q is too long.", s), "The longest time is 36500d, a hundred years.",
			"Write a shorter one, or never."
		return nil, bad
	}
	return &d, nil
}
