package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

func checkSettings(_ context.Context, d *doctor) (Finding, error) {
	set := 0
	for _, s := range d.stores.config.Settings() {
		if s.Source != fromDefault {
			set++
		}
	}
	result := fmt.Sprintf("%d settings are set.", set)
	if set == 1 {
		result = "1 setting is set."
	}
	if d.stores.config.BaseURL == "" && d.stores.config.DatabaseURL != "" {
		return Finding{Grade: GradeWarn, Result: fmt.Sprintf(
			"%s The addresses in events and callbacks have no host.", result),
			Remedy: "Set PARLEY_BASE_URL to the public address of the server."}, nil
	}
	return okFinding("%s", result), nil
}

// checkHeads checks the places of PARLEY_AUDIT_HEADS at the same time, and stores no head.
func checkHeads(ctx context.Context, d *doctor) (Finding, error) {
	places, err := d.stores.config.headStores()
	if err != nil {
		return Finding{Grade: GradeFail,
			Result: "PARLEY_AUDIT_HEADS: " + strings.ReplaceAll(sentenceOf(err), "\n", "; "),
			Remedy: "Correct PARLEY_AUDIT_HEADS."}, nil
	}
	if len(places) == 0 {
		return Finding{Grade: GradeWarn, Result: "None: the owner of the database can rewrite the log unseen (PARLEY_AUDIT_HEADS is not set).",
			Remedy: "Set PARLEY_AUDIT_HEADS to a place where the owner of the database cannot write."}, nil
	}
	found, errs := make([]string, len(places)), make([]error, len(places))
	var wg sync.WaitGroup
	for i, to := range places {
		wg.Go(func() { found[i], errs[i] = to.Check(ctx) })
	}
	wg.Wait()
	f := Finding{Grade: GradeOK}
	var failed, good []string
	for i, to := range places {
		if errs[i] != nil {
			f.Grade, f.Remedy = GradeFail, "Check PARLEY_AUDIT_HEADS, and that this machine reaches the place and may write there."
			failed = append(failed, to.String()+" failed: "+describeDialError(errs[i]))
		} else {
			good = append(good, to.String()+" "+found[i]+".")
		}
	}
	f.Result = strings.Join(append(failed, good...), "\n")
	return f, nil
}

// The free space that the files of running turns need.
const (
	diskFail = 256 << 20
	diskWarn = 2 << 30
)

// checkDisk checks the directory for the files of running turns.
func checkDisk(_ context.Context, d *doctor) (Finding, error) {
	dir := cmp.Or(d.stores.config.RunnerDir, os.TempDir())
	probe, err := os.MkdirTemp(dir, "parley-doctor-")
	if err != nil {
		return Finding{Grade: GradeFail, Result: "The files of sessions cannot be stored: " + sentenceOf(err),
			Remedy: "Let PARLEY_RUNNER_DIR name a directory that the server can write to."}, nil
	}
	if err := os.Remove(probe); err != nil {
		return Finding{}, err
	}
	free, ok := freeDisk(dir)
	if !ok {
		return okFinding("%s is writable.", dir), nil
	}
	return diskFinding(dir, free), nil
}

func diskFinding(dir string, free uint64) Finding {
	f := okFinding("%s has %.1f GiB free.", dir, float64(free)/(1<<30))
	switch {
	case free < diskFail:
		f.Grade = GradeFail
	case free < diskWarn:
		f.Grade = GradeWarn
	default:
		return f
	}
	f.Remedy = "Free some space, or let PARLEY_RUNNER_DIR name another directory."
	return f
}

func checkSandbox(ctx context.Context, d *doctor) (Finding, error) {
	cfg := d.stores.config
	if cfg.Sandbox == "off" || cfg.Workers == 0 {
		return okFinding("This server runs no commands."), nil
	}
	if cfg.Runner != "" {
		return checkRunner(ctx, cfg)
	}
	box, err := OpenSandbox(ctx, cfg)
	if missing, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		f := Finding{Grade: GradeWarn, Result: "The agent has no commands: " + sentenceOf(errors.New(missing.Reason)), Remedy: missing.Remedy}
		if cfg.Sandbox != "auto" {
			f.Grade = GradeFail
		}
		return f, nil
	}
	if err != nil {
		return Finding{}, err
	}
	limited := box.Limited()
	if err := box.Close(); err != nil {
		return Finding{}, err
	}
	if unlimited, ok := errors.AsType[*sandbox.Unavailable](limited); ok {
		f := Finding{Grade: GradeWarn, Result: "Commands are contained. The server watches their memory. " + unlimited.Reason,
			Remedy: unlimited.Remedy}
		if cfg.Sandbox == "require-limits" {
			f.Grade = GradeFail
		}
		return f, nil
	}
	return okFinding("Commands are contained, and the kernel limits them."), nil
}

// checkServerModel sends a short request to the model of workspaces that name none.
func checkServerModel(ctx context.Context, d *doctor) (Finding, error) {
	name, because := d.stores.config.DefaultModel()
	if name == builtinGuide {
		return Finding{Grade: GradeWarn, Result: fmt.Sprintf("%s answers, which is not a language model (%s).", name, because),
			Remedy: "Set PARLEY_MODEL, and the key of its provider."}, nil
	}
	opened, err := newModels(d.stores.config, func() (model.Model, error) { return builtin.New(), nil }, nil, ownProviders{}).ofServer(name)
	if err != nil {
		return Finding{Grade: GradeFail, Result: sentenceOf(err), Remedy: "Correct PARLEY_MODEL or the settings of its provider."}, nil
	}
	if err := askModel(ctx, opened); err != nil {
		return Finding{Grade: GradeFail, Result: name + ": " + describeModelError(err),
			Remedy: "Check the key and the address of the provider, and that this machine reaches it."}, nil
	}
	return okFinding("%s answers.", name), nil
}
