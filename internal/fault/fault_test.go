package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEveryCodeHasAFittingType compares the type of each code with its status.
func TestEveryCodeHasAFittingType(t *testing.T) {
	t.Parallel()
	want := map[int][]fault.Type{
		400: {fault.InvalidRequest}, 401: {fault.Authentication}, 403: {fault.Permission}, 404: {fault.NotFound},
		405: {fault.InvalidRequest}, 406: {fault.InvalidRequest}, 409: {fault.Conflict}, 410: {fault.Conflict, fault.NotFound},
		412: {fault.Conflict}, 413: {fault.InvalidRequest}, 415: {fault.InvalidRequest}, 416: {fault.InvalidRequest},
		422: {fault.Idempotency, fault.InvalidRequest},
		429: {fault.RateLimit}, 500: {fault.API}, 503: {fault.API},
	}
	for _, c := range fault.Codes() {
		fits := false
		for _, typ := range want[c.Status()] {
			fits = fits || typ == c.Type()
		}
		if !fits {
			t.Errorf("%s is %d and %s", c, c.Status(), c.Type())
		}
	}
	if unknown := fault.Code("NONSENSE"); unknown.Status() != 500 || unknown.Type() != fault.API {
		t.Error("an undeclared code is not an internal error")
	}
}

func TestFaultsAreFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	f := fault.Invalid(fault.Violation{Param: "/a", Rule: "type", Message: "a is wrong."}, fault.Violation{Param: "/b", Rule: "type",
		Message: "b is wrong."})
	if got := fault.From(fmt.Errorf("start: %w", f)); got != f || got.Param != "a" || got.Message != "a is wrong. (and 1 more)" {
		t.Errorf("found %+v", got)
	}
	if fault.From(errors.New("x")) != nil || fault.From(nil) != nil {
		t.Error("an ordinary error is a fault")
	}
}
