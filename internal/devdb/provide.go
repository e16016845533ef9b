package devdb

import (
	"context"
	"fmt"
)

// provide finds the programs for a data directory of that major version, 0 being
// a new one.
func provide(ctx context.Context, major int, progress func(string)) (programs, error) {
	all, err := installed(ctx)
	if err != nil {
		return programs{}, err
	}
	if prog, ok := choose(all, major); ok {
		return prog, nil
	}
	return programs{}, fmt.Errorf("%w", ErrNoPostgres)
}
