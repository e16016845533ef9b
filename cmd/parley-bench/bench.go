package main

// bench holds what the runs share.
type bench struct {
	cluster  *cluster
	profiles string // directory for processor profiles of the servers; "" for none
}
