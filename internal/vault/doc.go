// Package vault owns what is secret: the master keys, what is sealed under them,
// and the credentials of workspaces. It promises that a value is in the database
// only as an envelope that opens for its own workspace, name, version and hosts.
// It never prints, logs or marshals a value, and never decides who may use one.
package vault
