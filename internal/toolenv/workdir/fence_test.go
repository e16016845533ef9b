package workdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// The older of two claims saves nothing, whichever is quicker.
func TestANewerClaimFencesOlderOnesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	first, old := w.restore(t)
	write(t, old, "a", "first")
	save(t, first)
	stale := workdir.Claim{Workspace: w.ws, Session: w.session, Epoch: w.epoch}
	second, dir := w.restore(t)
	before := w.stored(t)
	write(t, old, "a", "late")
	must(t, os.RemoveAll(filepath.Join(dir, "a")))
	if _, err := first.Save(t.Context()); !errors.Is(err, workdir.ErrFenced) {
		t.Errorf("the older claim saves: %v", err)
	}
	equal(t, w.stored(t), before)
	if _, err := w.Restore(t.Context(), stale, t.TempDir()); !errors.Is(err, workdir.ErrFenced) {
		t.Errorf("the older claim reopens the folder: %v", err)
	}
	save(t, second)
	if _, err := first.Save(t.Context()); !errors.Is(err, workdir.ErrFenced) {
		t.Errorf("the older claim saves after the newer one: %v", err)
	}
	equal(t, w.stored(t), tree(t, dir))
}

// A folder that stayed on a machine is reused if no other machine has saved it meanwhile.
func TestAFolderIsTakenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "content")
	save(t, f)
	old := workdir.Claim{Workspace: w.ws, Session: w.session, Epoch: w.epoch}
	if ok, err := f.Lease(t.Context(), w.claim()); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if _, err := f.Lease(t.Context(), old); !errors.Is(err, workdir.ErrFenced) {
		t.Errorf("by the older claim: %v", err)
	}
	if done := save(t, f); done.Changed != 0 || f.Bytes() != 7 {
		t.Errorf("%+v, %d bytes", done, f.Bytes())
	}
	g, there := w.restore(t)
	write(t, there, "a", "changed elsewhere")
	save(t, g)
	if ok, err := f.Lease(t.Context(), w.claim()); ok || err != nil {
		t.Errorf("after another machine has saved: %v, %v", ok, err)
	}
	if _, err := g.Save(t.Context()); !errors.Is(err, workdir.ErrFenced) {
		t.Errorf("the other machine still saves: %v", err)
	}
}

func TestNobodyElseTakesAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "mine")
	save(t, f)
	other := w.tenant(t, "other")
	for what, c := range map[string]workdir.Claim{
		"another workspace": {Workspace: other, Session: w.session, Epoch: 100},
		"no session":        {Workspace: w.ws, Session: uuid.New(), Epoch: 100},
	} {
		if _, err := w.Restore(t.Context(), c, t.TempDir()); !errors.Is(err, workdir.ErrFenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := w.List(t.Context(), other, w.session); err != nil || len(list) != 0 {
		t.Errorf("another workspace sees %v, %v", list, err)
	}
	if _, err := w.Open(t.Context(), other, w.session, "a"); err == nil {
		t.Error("another workspace opens a file")
	}
	save(t, f)
}

// A save whose response is lost may be stored. The next save from the same folder is correct
// nevertheless, also if it removes files of that save.
func TestAnAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	slow.Test(t, "races many writers")
	w := newWorld(t, workdir.Options{})
	pool, blade := cuttable(t, w.dsn)
	w.Store = workdir.New(pool, workdir.Options{})
	f, dir := w.restore(t)
	lost := 0
	for at := 1; ; at++ {
		write(t, dir, "extra", "content")
		blade.arm(at, nil)
		_, err := f.Save(t.Context())
		blade.arm(0, nil)
		if err == nil {
			break // fewer responses arrived
		}
		if w.stored(t) == tree(t, dir) {
			lost++
		}
		must(t, os.Remove(filepath.Join(dir, "extra")))
		save(t, f)
		if equal(t, w.stored(t), ""); t.Failed() {
			return
		}
	}
	if lost == 0 {
		t.Error("no response was lost")
	}
}

func TestAFolderIsRestoredIntoAnEmptyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workdir.Options{})
	f, dir := w.restore(t)
	write(t, dir, "a", "new")
	save(t, f)
	used := t.TempDir()
	write(t, used, "a", "old")
	if _, err := w.Restore(t.Context(), w.claim(), used); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file exists: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(used, "a")); err != nil || string(got) != "old" {
		t.Errorf("%q, %v", got, err)
	}
}
