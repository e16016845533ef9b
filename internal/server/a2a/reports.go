package a2a

import (
	"encoding/json"
	"time"

	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/turn"
)

// Reports returns the encoders of push notifications, for turn.Config. base is the public URL of
// the service, "" if it is not configured.
func Reports(base string) map[callback.Protocol]turn.ReportEncoder {
	reports := make(map[callback.Protocol]turn.ReportEncoder)
	for _, v := range []*call.Version{call.V03, call.V10} {
		reports[v.Reports] = func(view session.View, files filestore.Files, at time.Time) ([]byte, error) {
			t := task.Of(base, view, files, task.Whole)
			t.Status.Timestamp = task.Stamp(at)
			return json.Marshal(v.Sent(t))
		}
	}
	return reports
}
