package workdir

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

const (
	// long is the size from which a Restore or Save gets a line in the log.
	long = 32 << 20
	// logEvery is the pause between two log lines of a long Restore or Save.
	logEvery = 5 * time.Second
)

// Progress is the progress of a Restore or Save.
type Progress struct {
	Session        uuid.UUID
	Saving         bool
	Files, OfFiles int
	Bytes, OfBytes int64
}

// meter counts the bytes that a Restore or Save moves, and logs large ones.
type meter struct {
	Progress
	log        *slog.Logger
	report     func(Progress)
	began      time.Time
	lastReport time.Time
}

func (s *Store) newMeter(session uuid.UUID, saving bool) *meter {
	now := time.Now()
	return &meter{Progress: Progress{Session: session, Saving: saving}, log: s.log, report: s.opt.Progress, began: now, lastReport: now}
}

// expectBytes adds the bytes of a file to be moved.
func (m *meter) expectBytes(bytes int64) {
	m.OfFiles++
	m.OfBytes += bytes
}

// addMoved adds moved files and bytes.
func (m *meter) addMoved(ctx context.Context, files int, bytes int64) {
	m.Files += files
	m.Bytes += bytes
	if m.OfBytes > long && time.Since(m.lastReport) >= logEvery {
		m.reportState(ctx, "under way")
	}
}

// logSummary logs the result.
func (m *meter) logSummary(ctx context.Context) {
	if m.OfBytes > long {
		m.reportState(ctx, "done")
	}
}

func (m *meter) reportState(ctx context.Context, state string) {
	m.lastReport = time.Now()
	what := "restore files"
	if m.Saving {
		what = "save files"
	}
	m.log.InfoContext(ctx, what, "session", m.Session, "state", state, "files", m.Files, "of_files", m.OfFiles,
		"bytes", m.Bytes, "of_bytes", m.OfBytes, "duration", m.lastReport.Sub(m.began).Round(time.Millisecond))
	if m.report != nil {
		m.report(m.Progress)
	}
}
