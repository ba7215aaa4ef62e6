//go:build !linux

package main

import "errors"

// limitFiles works only on Linux: on other systems, a process cannot limit another one.
func limitFiles(int, int64) error { return errors.ErrUnsupported }
