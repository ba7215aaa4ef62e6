package testenv

import (
	"context"
	"testing"
)

// around wraps a package's tests, and stops what they share once they have run.
type around struct {
	m    interface{ Run() int }
	ends *[]func()
}

func (a *around) Run() int {
	code := a.m.Run()
	for i := len(*a.ends) - 1; i >= 0; i-- {
		(*a.ends)[i]()
	}
	return code
}

// packageTest is a test whose cleanups wait for the end of all tests.
type packageTest struct {
	testing.TB
	ends *[]func()
}

func (o *packageTest) Context() context.Context { return context.Background() }
func (o *packageTest) Cleanup(f func())         { *o.ends = append(*o.ends, f) }
