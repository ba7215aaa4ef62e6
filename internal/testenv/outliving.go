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

// outliving is a test whose cleanups wait for the end of all tests.
type outliving struct {
	testing.TB
	ends *[]func()
}

func (o *outliving) Context() context.Context { return context.Background() }
func (o *outliving) Cleanup(f func())         { *o.ends = append(*o.ends, f) }
