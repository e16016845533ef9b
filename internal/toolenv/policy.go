package toolenv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/vault"
)

// maxHosts is the maximum number of hosts in a workspace's policy.
const maxHosts = 200

// SetPolicy replaces a workspace's policy. seen is the UpdatedAt of the policy that the caller has
// read: if it has changed since, SetPolicy fails with PRECONDITION_FAILED. Nil: it may have.
func (r *Runner) SetPolicy(ctx context.Context, workspace uuid.UUID, p Policy, seen *time.Time) (Policy, error) {
	var wrong []fault.Violation
	hosts := make([]string, 0, len(p.Hosts))
	for i, text := range p.Hosts {
		host, why := vault.Host(text)
		if why != "" {
			wrong = append(wrong, fault.Violation{Param: fmt.Sprintf("/hosts/%d", i), Rule: "format",
				Message: fmt.Sprintf("%.80q is not a host: %s", text, why)})
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	if hosts = slices.Compact(hosts); len(hosts) > maxHosts {
		wrong = append(wrong, fault.Violation{Param: "/hosts", Rule: "length", Message: fmt.Sprintf("A workspace has at most %d hosts.",
			maxHosts)})
	}
	if len(wrong) > 0 {
		return Policy{}, fault.Invalid(wrong...)
	}
	row, err := r.q.EgressPut(ctx, workspace, hosts, p.Public, seen)
	if errors.Is(err, pgx.ErrNoRows) {
		return Policy{}, fault.New(fault.PreconditionFailed, "The policy has changed since you read it. Read it again, and repeat your change.")
	}
	if err != nil {
		return Policy{}, fmt.Errorf("set where requests may go: %w", err)
	}
	return Policy{Hosts: row.Hosts, Public: row.Public, UpdatedAt: row.UpdatedAt}, nil
}
