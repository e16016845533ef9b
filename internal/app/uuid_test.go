package app

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/dbtest"
)

// TestUUIDsGoThroughUnchanged sends ids in every form that queries use.
func TestUUIDsGoThroughUnchanged(t *testing.T) {
	t.Parallel()
	pool, err := openPool(t.Context(), Secret(dbtest.Empty(t)), "test", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	one, two := uuid.New(), uuid.Nil
	var none *uuid.UUID
	var gotOne, gotTwo uuid.UUID
	var gotPointer, gotNone *uuid.UUID
	var gotList []uuid.UUID
	var text string
	err = pool.QueryRow(t.Context(), `SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid[], $6::text`, one, two, &one, none,
		[]uuid.UUID{one, two}, one).
		Scan(&gotOne, &gotTwo, &gotPointer, &gotNone, &gotList, &text)
	if err != nil {
		t.Fatal(err)
	}
	if gotOne != one || gotTwo != two || gotPointer == nil || *gotPointer != one || gotNone != nil ||
		!slices.Equal(gotList, []uuid.UUID{one, two}) || text != one.String() {
		t.Errorf("got %v %v %v %v %v %q for %v and %v", gotOne, gotTwo, gotPointer, gotNone, gotList, text, one, two)
	}
}
