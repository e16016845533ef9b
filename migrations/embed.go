// Package migrations holds the schema and is the only package that changes it: the goose files
// beside this one, then River's own.
//
// Up promises that any number of replicas may call it at once, that calling it again does nothing,
// that an older binary leaves a newer schema alone, and that a migration waiting for a lock never
// makes the traffic behind it wait with it. For that last promise a file changes one busy table at
// most and stays compatible with the previous binary: expand first, contract a release later.
//
// A file marked NO TRANSACTION must be safe to run again from its start, because it is retried as a
// whole: DROP INDEX IF EXISTS before CREATE INDEX CONCURRENTLY. It also sets lock_timeout itself,
// because waiting for old transactions counts.
package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

//go:embed *.sql
var files embed.FS

// riverLine is the only line of migrations that River's driver for pgx has.
const riverLine = "main"

// Hash identifies the schema that Up makes: it changes with every byte of our files and of River's.
// Test templates are named after it.
func Hash() string {
	return hash(files, riverpgxv5.New(nil).GetMigrationFS(riverLine))
}

func hash(all ...fs.FS) string {
	sum := sha256.New()
	for _, fsys := range all {
		err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(fsys, path)
			fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
			return err
		})
		if err != nil {
			panic(err) // all of them are compiled in
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
