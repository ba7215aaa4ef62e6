package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FindHome returns the absolute path of the server's home: the flag if it is set, otherwise ROPEWALK_HOME, otherwise
// ~/.ropewalk. It is for commands that need a home but no configuration.
func FindHome(flag string, env Environment) (string, error) {
	return homeDir(Options{Home: flag, Environment: env})
}

// CreateHome creates a home unless it exists. The error names the directory, the reason and what to do.
func CreateHome(dir string) error {
	return homeError(dir, os.MkdirAll(dir, 0o700))
}

// CheckHome returns the error that CreateHome would return, or nil if the directory exists. To find out, it
// creates and removes an empty directory where the home would be created.
func CheckHome(dir string) error {
	around := existing(dir)
	_, err := os.Stat(dir)
	switch {
	case obstacle(around) != "":
		return homeError(dir, syscall.ENOTDIR)
	case !errors.Is(err, fs.ErrNotExist):
		return nil // the code that uses the directory reports what is wrong with it
	}
	probe, err := os.MkdirTemp(around, ".ropewalk-*")
	if err != nil {
		return homeError(dir, err)
	}
	return homeError(dir, os.Remove(probe))
}

func homeError(dir string, err error) error {
	if err == nil {
		return nil
	}
	reason := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		reason = p.Err
	}
	const choose = "choose another home with --home or " + EnvHome
	around := existing(dir)
	if what := obstacle(around); what != "" {
		return fmt.Errorf("the home %s cannot be created: %s %s; %s", dir, around, what, choose)
	}
	var remedy string
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "free some space at " + around
	case errors.Is(err, syscall.EROFS):
		remedy = "mount " + around + " read-write"
	default:
		remedy = fmt.Sprintf("let this user (id %d) write to %s", os.Geteuid(), around)
	}
	return fmt.Errorf("the home %s cannot be created: %w; %s, or %s", dir, reason, remedy, choose)
}

// obstacle returns what is in the way at a path that must be a directory. It returns "" for a directory, and if
// the path cannot be examined.
func obstacle(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is a dangling link"
	case err != nil || info.IsDir():
		return ""
	case info.Mode().IsRegular():
		return "is a file"
	}
	return "is not a directory"
}

// existing returns the path if it exists, even as a dangling link, and otherwise its nearest existing parent.
func existing(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// ExplainHome adds a remedy to an error from writing to a home, if this process lacks permission. Other errors are
// returned unchanged.
func ExplainHome(dir string, err error) error {
	readOnly := errors.Is(err, syscall.EROFS)
	if !readOnly && !errors.Is(err, fs.ErrPermission) || writable(dir) {
		return err
	}
	remedy := "mount it read-write"
	if !readOnly {
		remedy = fmt.Sprintf("let this user (id %d) write there", os.Geteuid())
		if info, statErr := os.Stat(dir); statErr == nil {
			if owner, ok := info.Sys().(*syscall.Stat_t); ok {
				remedy += fmt.Sprintf(" (it is owned by the user with id %d and has mode %o)", owner.Uid, info.Mode().Perm())
			}
		}
	}
	return fmt.Errorf("cannot write to the home %s: %w; %s, or choose another home with --home or %s", dir, err, remedy, EnvHome)
}

// writable reports whether a new entry can be created in a directory.
func writable(dir string) bool {
	probe, err := os.MkdirTemp(dir, ".ropewalk-*")
	return err == nil && os.Remove(probe) == nil
}
