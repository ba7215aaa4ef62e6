package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ExplainHome adds what to do to an error of something that was to be written into a home, when it failed because this
// process may not write there. Other errors are returned as they are.
func ExplainHome(dir string, err error) error {
	readOnly := errors.Is(err, syscall.EROFS)
	if !readOnly && !errors.Is(err, fs.ErrPermission) || writable(dir) {
		return err
	}
	remedy := "mount it writable"
	if !readOnly {
		remedy = fmt.Sprintf("let this user (id %d) write there", os.Geteuid())
		if info, statErr := os.Stat(dir); statErr == nil {
			if owner, ok := info.Sys().(*syscall.Stat_t); ok {
				remedy += fmt.Sprintf(" (it belongs to the user with id %d, mode %o)", owner.Uid, info.Mode().Perm())
			}
		}
	}
	return fmt.Errorf("the home %s cannot be written: %w; %s, or choose another home with --home or %s", dir, err, remedy, EnvHome)
}

// writable reports whether a directory takes a new entry.
func writable(dir string) bool {
	probe, err := os.MkdirTemp(dir, ".ropewalk-*")
	return err == nil && os.Remove(probe) == nil
}
