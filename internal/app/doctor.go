package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/pgerr"
)

// Grade is how well a check of Doctor went.
type Grade string

// The grades of findings. A check is skipped if it needs one that failed.
const (
	GradeOK   Grade = "ok"
	GradeWarn Grade = "warn"
	GradeFail Grade = "fail"
	GradeSkip Grade = "skip"
)

// Finding is the result of one check of Doctor.
type Finding struct {
	Check  string `json:"check"`
	Grade  Grade  `json:"status"`
	Result string `json:"result"`
	Remedy string `json:"remedy,omitempty"`
}

// DoctorOptions configure Doctor.
type DoctorOptions struct {
	DevDir string   // of the database, if the settings name none
	URLs   []string // addresses of the server, the outermost first
}

// checkTimeout is the time limit of a check.
const checkTimeout = 10 * time.Second

// doctor holds what earlier checks have found out.
type doctor struct {
	opt    DoctorOptions
	stores *Stores // with the database's address and the master keys; its pool is opened by checkDatabase
	cannot string  // why checks that need the database are skipped; "" if they are not
}

// doctorCheck is one check. run returns its result, or an error that explains the failure.
type doctorCheck struct {
	name     string
	limit    time.Duration
	database bool // needs the database
	run      func(context.Context, *doctor) (Finding, error)
}

// Doctor checks whether a server with these settings can work on this machine. It changes nothing.
// Each check has a time limit, whatever it waits for.
func Doctor(ctx context.Context, cfg Config, opt DoctorOptions) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		d := &doctor{opt: opt, stores: &Stores{config: cfg, DSN: cfg.DatabaseURL, keys: cfg.VaultKey, noKey: noKey}}
		defer func() { d.stores.Close() }()
		for _, c := range []doctorCheck{
			{"settings", checkTimeout, false, checkSettings},
			{"database", checkTimeout, false, checkDatabase},
			{"pooler", checkTimeout, true, checkPooler},
			{"rights", checkTimeout, true, checkRights},
			{"durability", checkTimeout, true, checkDurability},
			{"listen", checkTimeout, true, checkNotifications},
			{"migrations", 2 * checkTimeout, true, checkMigrations},
			{"vault", checkTimeout, true, checkVault},
			{"clock", checkTimeout, true, checkClock},
			{"disk", checkTimeout, false, checkDisk},
			{"heads", checkTimeout, false, checkHeads},
			{"sandbox", 2 * checkTimeout, false, checkSandbox},
			{"model", 6 * checkTimeout, false, checkServerModel},
			{"embeddings", 6 * checkTimeout, true, checkEmbeddings},
		} {
			if !yield(d.perform(ctx, c)) || ctx.Err() != nil {
				return
			}
		}
		for f := range checkAddresses(ctx, opt.URLs) {
			if !yield(f) {
				return
			}
		}
	}
}

// perform runs a check within its time limit.
func (d *doctor) perform(ctx context.Context, c doctorCheck) Finding {
	if c.database && d.cannot != "" {
		return Finding{c.name, GradeSkip, d.cannot, ""}
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	done := make(chan Finding, 1)
	go func() {
		f, err := c.run(ctx, d)
		if err != nil {
			f = failureFinding(err)
		}
		done <- f
	}()
	f := Finding{Grade: GradeFail, Result: fmt.Sprintf("No result within %s.", c.limit)}
	select {
	case f = <-done:
	case <-time.After(c.limit + time.Second): // the check does not obey its context
	}
	f.Check = c.name
	return f
}

// failureFinding explains an error of a check.
func failureFinding(err error) Finding {
	f := Finding{Grade: GradeFail, Result: sentenceOf(pgerr.Cause(err))}
	if start, ok := errors.AsType[*StartError](err); ok {
		f.Result, f.Remedy = strings.TrimSuffix(start.Error(), ".")+".", start.Do
	} else if why, remedy := pgerr.Explain(err); why != "" {
		f.Result, f.Remedy = why, remedy
	}
	if errors.Is(err, context.DeadlineExceeded) && f.Remedy == "" {
		f.Result = "No answer in time."
	}
	return f
}

func okFinding(format string, args ...any) Finding {
	return Finding{Grade: GradeOK, Result: fmt.Sprintf(format, args...)}
}
