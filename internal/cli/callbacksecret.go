package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) callbacksSecret() *cobra.Command {
	var rotate bool
	var overlap string
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "create, print or rotate the signing secret of callbacks",
		Example: `  parley callbacks secret > webhook.secret
  parley callbacks secret --rotate > webhook.secret
  parley callbacks secret --rotate --overlap 0s      the old one ends now`,
		Long: `Prints the workspace's signing secret, whsec_…, alone on stdout. It is shown once. --rotate creates a
new secret; callbacks are signed with both until the overlap ends, so that receivers can change one
after the other.`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			if !rotate {
				made, err := a.ShowCallbackSecret(ctx)
				if e, ok := errors.AsType[*client.Error](err); ok && e.Code == "OBJECT_CONFLICT" {
					return &problem{Exit: exitUsage, Code: "SHOWN_BEFORE", What: "The secret was shown before.", Why: "It is shown once.",
						Do: "If it is lost, create another: parley callbacks secret --rotate"}
				}
				if err != nil {
					return err
				}
				return c.printOnce(made.Text, object{"secret": made.Text}, "This secret signs the callbacks of %s.", a.slug)
			}
			stay, err := parseDuration(overlap)
			if err != nil {
				return err
			}
			if stay == nil || *stay > longestOverlap {
				return &problem{Exit: exitUsage, Code: "USAGE", What: "An overlap has an end.",
					Why: "Two secrets sign for at most 30 days.", Do: "Give a time, such as 24h."}
			}
			made, err := a.RollCallbackSecret(ctx, *stay)
			if err != nil {
				return err
			}
			end := "ends now"
			if *stay > 0 {
				end = "signs beside it for another " + stay.String()
			}
			return c.printOnce(made.Text, object{"secret": made.Text}, "Created a new signing secret; the old one %s.", end)
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().BoolVar(&rotate, "rotate", false, "create a new secret")
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "with --rotate: how long the old secret signs too")
	return cmd
}

// longestOverlap is how long two signing secrets may be valid at once.
const longestOverlap = 30 * 24 * time.Hour
