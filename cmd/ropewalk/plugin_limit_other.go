//go:build !linux

package main

import "errors"

// limitFiles exists on Linux alone: elsewhere no process can be limited by another one.
func limitFiles(int, int64) error { return errors.ErrUnsupported }
