package toolenv

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/tool"
)

// Probe is a run for requests of an administrator. It has no session, and so no folder.
type Probe struct{ *Run }

// OpenProbe opens a run for requests of an administrator in a workspace.
func (r *Runner) OpenProbe(workspace uuid.UUID) Probe {
	return Probe{r.Open(Turn{Workspace: workspace, Turn: uuid.Must(uuid.NewV7())})}
}

// KeepResult refuses every file.
func (Probe) KeepResult(context.Context, tool.Call, string, []byte) (string, error) {
	return "", tool.Refusal("a test has no session that keeps files.")
}
