package database

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/core"
)

// inPlace returns a check that the file, and the directory it is in, are still those that were opened.
// A server whose home was deleted or replaced would otherwise acknowledge writes that nobody ever
// finds.
func inPlace(path string) (func() error, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.Stat(path)
		if err == nil && os.SameFile(opened, now) {
			return nil
		}
		reason := "was replaced by another file"
		if err != nil {
			reason = "is gone"
		}
		return core.Wrap(core.CodeUnavailable, fmt.Errorf("%s %s while the server had it open", path, reason),
			"the file of the state "+reason+": nothing was changed; stop the server, put its home back, and start it again")
	}, nil
}
