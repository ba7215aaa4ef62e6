package registry

import (
	"fmt"

	"github.com/ropewalk/ropewalk/plugins"
)

// The bounds of Query.Limit.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// CheckQuery returns the plugins.ErrInvalid that Search owes its caller for what it was given, or
// nil. Serve calls it before Search; a registry that is also used directly calls it itself.
func CheckQuery(q Query) error {
	if q.Limit < 0 || q.Limit > MaxLimit {
		return fmt.Errorf("%w: the limit of a search must be 1 to %d, or 0 for %d; it is %d", plugins.ErrInvalid, MaxLimit, DefaultLimit, q.Limit)
	}
	return nil
}

// CheckRef returns the plugins.ErrInvalid that Resolve owes its caller for what it was given, or
// nil. Serve calls it before Resolve; a registry that is also used directly calls it itself.
func CheckRef(ref Ref) error {
	if ref.Name == "" {
		return fmt.Errorf("%w: a bundle needs a name", plugins.ErrInvalid)
	}
	return nil
}

// CheckFetch returns the plugins.ErrInvalid that Fetch owes its caller for what it was given, or
// nil. Serve calls it before Fetch; a registry that is also used directly calls it itself.
func CheckFetch(pkg Package) error {
	if pkg.Kind != KindMCPB {
		return fmt.Errorf("%w: only packages of kind %s can be fetched, not %q", plugins.ErrInvalid, KindMCPB, pkg.Kind)
	}
	return nil
}
