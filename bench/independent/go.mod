module github.com/parley-server/parley/bench/independent

go 1.26
