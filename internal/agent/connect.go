package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/tool"
)

// requireConnection ends the run until a user has connected the tool server of a call, which had no
// effect so far. A call asks once, and once more for scopes, and not for a server that was not
// connected before in the turn. For a grant of the whole workspace, only a sender that may connect
// the workspace is asked.
func (r *run) requireConnection(ctx context.Context, s *step, c event.ToolCall, needs tool.Connect) error {
	server := needs.Server
	if q, declined := r.state.declined[server]; declined && q.window == 0 {
		return r.emitResult(ctx, s, c, tool.Reject(
			fmt.Sprintf("The user has not granted access to the tool server %s, so this was not done. Continue without it.", server)))
	} else if declined {
		return r.emitResult(ctx, s, c, tool.Reject(
			fmt.Sprintf("The tool server %s was not connected %s, so this was not done. Continue without it.", server, q.windowText())))
	}
	if q, asked := r.state.connects[c.ID]; asked && (q.scopes || needs.Scopes == nil) {
		return r.emitResult(ctx, s, c, tool.Reject(
			fmt.Sprintf(
				"The tool server %s does not accept its new connection, so this was not done. An administrator can check the server.", server)))
	}
	if needs.Shared && !r.MayConnect {
		return r.emitResult(ctx, s, c, tool.Reject(sharedReason(needs)))
	}
	return r.parkRun(event.ConnectRequired{ToolUseID: c.ID, Server: server, Scopes: needs.Scopes, Grant: needs.Grant})
}

// sharedReason says why a call needs an administrator.
func sharedReason(needs tool.Connect) string {
	if needs.Scopes != nil {
		return fmt.Sprintf("The workspace's access to the tool server %s lacks the scopes %s, so this was not done. "+
			"An administrator can grant them: parley tools connect %[1]s --scope %[3]s", needs.Server, strings.Join(needs.Scopes, ", "),
			strings.Join(needs.Scopes, ","))
	}
	return fmt.Sprintf("The workspace is not connected to the tool server %s, so this was not done. "+
		"An administrator can connect it: parley tools connect %[1]s", needs.Server)
}

// notePaused records the call that waits for a connection. Its server has rejected it, so it has not
// begun.
func (s *state) notePaused(b event.ConnectRequired, at time.Time) {
	s.connects[b.ToolUseID] = question{id: b.ApprovalID, window: b.ExpiresAt.Sub(at), server: b.Server, scopes: b.Scopes != nil}
	if st := s.lastStep(); st != nil {
		delete(st.begun, b.ToolUseID)
	}
}

// noteDecision records the answer to a question.
func (s *state) noteDecision(d event.Decision) {
	s.answered[d.ApprovalID] = d
	if d.Outcome == event.Provided {
		return
	}
	for _, q := range s.connects {
		if q.id == d.ApprovalID {
			if d.Outcome == event.Skipped {
				q.window = 0
			}
			s.declined[q.server] = q
		}
	}
}
