package app

import (
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// TestSilentHostDelaysConnectionsBriefly silences the first of two hosts, as a machine without power
// does. Once a connection to it has failed, new connections reach the second host soon, and the
// first one again when it works.
func TestSilentHostDelaysConnectionsBriefly(t *testing.T) {
	t.Parallel()
	slow.Test(t, "breaks connections")
	database := dbtest.Empty(t)
	first, firstDSN := dbtest.Proxy(t, database)
	second, secondDSN := dbtest.Proxy(t, database)
	pool, err := openPool(t.Context(), Secret(dbtest.PrimaryOf(firstDSN, secondDSN)+"&statement_timeout=500"), "test", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	first.Freeze()
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a statement succeeded through a silent host")
	}
	for range 2 { // the second attempt knows that the other host accepts connections
		pool.Reset()
		began := time.Now()
		if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= connectTimeout {
			t.Errorf("the second host was reached after %s, as if the first were not suspect", took)
		}
	}
	first.Thaw()
	second.Refuse(true)
	second.Cut()
	pool.Reset()
	if _, err := pool.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("through the first host again: %v", err)
	}
}
