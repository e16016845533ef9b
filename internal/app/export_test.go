package app

import (
	"context"
	"time"
)

var (
	VersionFinding = versionFinding
	SkewFinding    = skewFinding
	DiskFinding    = diskFinding
	CheckAddresses = checkAddresses
)

// PerformCheck runs one check of Doctor.
func PerformCheck(ctx context.Context, limit time.Duration, run func(context.Context) error) Finding {
	return (&doctor{}).perform(ctx, doctorCheck{name: "test", limit: limit, run: func(ctx context.Context, _ *doctor) (Finding, error) {
		return okFinding("done"), run(ctx)
	}})
}
