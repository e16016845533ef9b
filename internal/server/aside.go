package server

import (
	"runtime/debug"
)

// Aside runs f on a goroutine of its own and waits for it. A stream may stay on the goroutine of
// its request for hours, and would keep a stack as large as the queries before it needed.
func Aside(f func() error) error {
	done := make(chan error, 1)
	var died *asidePanic // set before done is closed
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				died = &asidePanic{p, debug.Stack()}
			}
		}()
		done <- f()
	}()
	err, returned := <-done
	if !returned {
		panic(died)
	}
	return err
}

// asidePanic is a panic of a function that Aside runs, for the caller's goroutine.
type asidePanic struct {
	value any
	stack []byte
}
