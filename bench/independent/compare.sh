#!/bin/sh
# compare.sh [flags] OLD NEW: run two binaries in turns and print their figures side by side.
# `compare.sh -help` lists the flags. Needs Go, PostgreSQL's programs and psql, on Linux.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
(cd "$here" && go build -o independent .)
exec "$here/independent" compare "$@"
