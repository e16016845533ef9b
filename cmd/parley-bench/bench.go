package main

// bench is the state that all runs share.
type bench struct {
	cluster  *cluster
	profiles string // directory for processor profiles of the servers; "" for none
}
