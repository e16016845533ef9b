// Package bench measures the service against the same server without a database
// and against the design one would write down first. It reports ratios of runs
// that were made in turns on one machine, and it checks in every run that each
// stream got exactly its deltas, in order, once.
//
// It never decides whether something is fast enough: targets stand beside the
// figures, and only a failed check is a failure.
package bench

// bench is what the runs share.
type bench struct {
	cluster  *cluster
	profiles string // directory for processor profiles of the servers; "" for none
}
