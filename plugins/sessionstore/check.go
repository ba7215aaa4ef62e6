package sessionstore

import (
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// CheckPut returns the plugins.ErrInvalid that Put must return for invalid arguments, or nil. Serve calls it before
// Put. A store that is also used directly must call it itself.
func CheckPut(rec Record, ttl time.Duration) error {
	if rec.ID == "" {
		return fmt.Errorf("%w: a session needs an id", plugins.ErrInvalid)
	}
	if ttl <= 0 {
		return fmt.Errorf("%w: the ttl of a session must be positive, not %s", plugins.ErrInvalid, ttl)
	}
	return nil
}

// CheckTouch returns the plugins.ErrInvalid that Touch must return for an invalid batch, or nil. Serve calls it before
// Touch. A store that is also used directly must call it itself.
func CheckTouch(batch []Touch) error {
	for i, touch := range batch {
		if touch.TTL <= 0 {
			return fmt.Errorf("%w: the ttl of touch %d must be positive, not %s", plugins.ErrInvalid, i, touch.TTL)
		}
	}
	return nil
}

// CheckReplace returns the plugins.ErrInvalid that Replace must return for invalid arguments, or nil. Serve calls it
// before Replace. A store that is also used directly must call it itself.
func CheckReplace(rec Record, ttl time.Duration) error {
	if rec.ID == "" {
		return fmt.Errorf("%w: a session needs an id", plugins.ErrInvalid)
	}
	if ttl < 0 {
		return fmt.Errorf("%w: the ttl of a session must not be negative: %s", plugins.ErrInvalid, ttl)
	}
	return nil
}
