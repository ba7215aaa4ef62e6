package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// limitFiles prevents a process's files from growing beyond length, as if the disk were full. A negative length removes the
// limit.
func limitFiles(pid int, length int64) error {
	limit := unix.Rlimit{Cur: math.MaxUint64, Max: math.MaxUint64}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return err
	}
	if limit.Cur = limit.Max; length >= 0 {
		limit.Cur = min(uint64(length), limit.Max)
	}
	return unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil)
}
