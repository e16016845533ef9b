package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestEveryWorkloadKeepsItsDeltas runs every workload in every mode at its smallest size. It checks
// that a run produces figures, not their values.
func TestEveryWorkloadKeepsItsDeltas(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs a benchmark")
	report, err := Run(t.Context(), Tiny(dbtest.Empty(t), func(line string) { t.Log(line) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Failures {
		t.Error(f)
	}
	var seen []string
	for _, res := range report.Results {
		for _, m := range res.Modes {
			seen = append(seen, m.Mode)
			if m.Failed == "" && len(m.Median) == 0 {
				t.Errorf("%s, %s, %s: no figures", res.Workload, res.Case, m.Mode)
			}
		}
	}
	for _, mode := range Modes {
		if (mode == Walled || mode == Bare) && !slices.Contains(seen, mode) && !need.All() {
			t.Log("no sandbox: the commands of the bench were left out")
			continue
		}
		if !slices.Contains(seen, mode) {
			t.Errorf("no workload ran in mode %s", mode)
		}
	}
	var table, machine bytes.Buffer
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteJSON(&machine); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(machine.Bytes()) {
		t.Error("the report is not JSON")
	}
	ratios, medians := strings.Index(table.String(), "RATIO"), strings.Index(table.String(), "MEDIAN")
	if ratios < 0 || medians < ratios {
		t.Errorf("the table does not begin with ratios:\n%s", &table)
	}
}

// TestTheCheckCanFail lets a server lose, repeat, swap and add frames.
func TestTheCheckCanFail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tamper Tamper
		want   string // "" for a correct answer
	}{
		{"honest", func(evs []event.Event) []event.Event { return evs }, ""},
		{"one delta lost", func(evs []event.Event) []event.Event { return slices.Delete(evs, 5, 6) }, "instead of"},
		{"the last delta lost", func(evs []event.Event) []event.Event {
			return slices.Delete(evs, len(evs)-2, len(evs)-1)
		}, "29 deltas instead of 30"},
		{"one delta twice", func(evs []event.Event) []event.Event { return slices.Insert(evs, 5, evs[5]) }, "after"},
		{"two deltas swapped", func(evs []event.Event) []event.Event {
			evs[5], evs[6] = evs[6], evs[5]
			return evs
		}, "instead of"},
		{"two texts swapped", func(evs []event.Event) []event.Event {
			evs[5].Data, evs[6].Data = evs[6].Data, evs[5].Data
			return evs
		}, "instead of"},
		{"no done", func(evs []event.Event) []event.Event { return evs[:len(evs)-1] }, "ended without done"},
		{"an id that falls", func(evs []event.Event) []event.Event {
			evs[5].Seq = 1
			return evs
		}, "id 1 after"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := ReadTampered(t.Context(), test.tamper)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("a correct answer fails: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, opt := range []Options{
		{Workloads: []string{"flatt"}},
		{Modes: []string{"row"}},
		{Workloads: []string{"replay"}, Modes: []string{Naive}},
	} {
		if _, err := Run(t.Context(), opt); err == nil {
			t.Errorf("%+v runs", opt)
		}
	}
}

// TestRatiosAreOfWholeRuns lets a mode fail in its second round, and merges text.
func TestRatiosAreOfWholeRuns(t *testing.T) {
	t.Parallel()
	good := []Figures{{Rate: 100, Rows: 1}}
	merged := []Figures{{Rate: 100, Rows: 0.2}}
	tests := []struct {
		name    string
		service ModeResult
		ratio   bool // the ratio is printed
		verdict bool // with a verdict
	}{
		{"good", ModeResult{Rounds: good}, true, true},
		{"failed in a later round", ModeResult{Rounds: good, Failed: "a delta was lost"}, false, false},
		{"merged", ModeResult{Rounds: merged}, true, false},
	}
	for _, test := range tests {
		test.service.Mode = Service
		report := Concluded(test.service, ModeResult{Mode: Naive, Rounds: good})
		if got := len(report.Ratios) == 1; got != test.ratio {
			t.Errorf("%s: ratios %+v", test.name, report.Ratios)
		} else if got && (report.Ratios[0].Met != nil) != test.verdict {
			t.Errorf("%s: verdict %v, target %q", test.name, report.Ratios[0].Met, report.Ratios[0].Target)
		}
		if failed := test.service.Failed != ""; failed != (len(report.Failures) == 1) || failed != (len(report.Results[0].Modes[0].Median) == 0) {
			t.Errorf("%s: failures %q, median %v", test.name, report.Failures, report.Results[0].Modes[0].Median)
		}
	}
}

// TestPeersRunBesideTheService reads peers, of which one is not installed, and runs their programs.
func TestPeersRunBesideTheService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("here/peer.json", `[{"name":"good","run":["sh","run.sh"],"memory":true,"flat":5},{"name":"bad","run":["false"]}]`, 0o644)
	write("here/run.sh", `echo noise; echo "{\"per_second\":$3}"`, 0o644)
	write("here/installed", "", 0o644)
	write("absent/peer.json", `[{"name":"absent","run":["true"]}]`, 0o644)
	modes, missing, run, err := Peers(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"good (memory only)", "bad"}; !slices.Equal(modes, want) || !slices.Equal(missing, []string{"absent"}) {
		t.Errorf("modes %q, missing %q", modes, missing)
	}
	f, err := run(t.Context(), "good (memory only)")
	if err != nil || f[Rate] != 5 {
		t.Errorf("figures %v, %v: want the 5 deltas of the peer", f, err)
	}
	if f, err := run(t.Context(), "bad"); err == nil {
		t.Errorf("a peer that failed has figures %v", f)
	}
}

// TestExitCodes expects 2 for an invalid command line and 1 for a run that fails.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"--help": 0, "--flatt": 2, "--rounds x": 2, "--quick --full": 2, "flatt": 2} {
		var out, errs bytes.Buffer
		if code := runCommand(t.Context(), strings.Fields(line), &out, &errs); code != want || (code == 0) != (errs.Len() == 0) {
			t.Errorf("parley-bench %s: exit code %d, want %d; stderr %q", line, code, want, &errs)
		}
	}
}
