package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FindHome returns the service home, absolute: the flag's, else ROPEWALK_HOME, else ~/.ropewalk.
// It is for commands that need a home and no configuration.
func FindHome(flag string, env Environment) (string, error) {
	return homeDir(Options{Home: flag, Environment: env})
}

// CreateHome creates a home unless it exists. Its error names the directory, the reason and what to do.
func CreateHome(dir string) error {
	return homeError(dir, os.MkdirAll(dir, 0o700))
}

// CheckHome reports why a home could not be created, with the error of CreateHome; nil when it exists. It creates
// and removes an empty directory where the home would be.
func CheckHome(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // whoever uses it says what is wrong with it
	}
	probe, err := os.MkdirTemp(existing(dir), ".ropewalk-*")
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
	const other = ", or choose another home with --home or " + EnvHome
	around := existing(dir)
	var remedy string
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		remedy = around + " is not a directory: choose another home with --home or " + EnvHome
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "free some space at " + around + other
	case errors.Is(err, syscall.EROFS):
		remedy = "mount " + around + " writable" + other
	default:
		remedy = fmt.Sprintf("let this user (id %d) write to %s", os.Geteuid(), around) + other
	}
	return fmt.Errorf("the home %s cannot be created: %w; %s", dir, reason, remedy)
}

// existing is the nearest path above dir that exists.
func existing(dir string) string {
	for {
		dir = filepath.Dir(dir)
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
	}
}
