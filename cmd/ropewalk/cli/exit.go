package cli

import "errors"

// The exit statuses of every command.
const (
	StatusFailed    = 1
	StatusUsage     = 2
	StatusRestart   = 3
	StatusNotJudged = 4
)

type exitError struct {
	error
	status int
}

func (e exitError) Unwrap() error { return e.error }

// Usage marks err as a mistake in the command line: exit status 2.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return exitError{err, StatusUsage}
}

// Restart marks err as requiring a server restart: exit status 3.
func Restart(err error) error { return exitError{err, StatusRestart} }

// NotJudged marks err as coming from a test run that could not check everything: exit status 4.
func NotJudged(err error) error { return exitError{err, StatusNotJudged} }

// Status returns the exit status for a command's error.
func Status(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[exitError](err); ok {
		return e.status
	}
	return StatusFailed
}
