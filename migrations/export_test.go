package migrations

import "io/fs"

// With replaces the embedded files.
func (o Options) With(fsys fs.FS) Options {
	o.files = fsys
	return o
}

var HashOf = hash

const LockKey = lockKey
