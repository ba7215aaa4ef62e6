package registry

import (
	"fmt"

	"github.com/ropewalk/ropewalk/plugins"
)

// The default and the maximum of Query.Limit.
const (
	DefaultLimit = 20
	MaxLimit     = 100
)

// CheckQuery returns the plugins.ErrInvalid that Search must return for an invalid query, or nil. Serve calls it before
// Search. A registry that is also used directly must call it itself.
func CheckQuery(q Query) error {
	if q.Limit < 0 || q.Limit > MaxLimit {
		return fmt.Errorf("%w: the limit of a search must be 1 to %d, or 0 for %d; it is %d", plugins.ErrInvalid, MaxLimit, DefaultLimit, q.Limit)
	}
	return nil
}

// CheckRef returns the plugins.ErrInvalid that Resolve must return for an invalid reference, or nil. Serve calls it
// before Resolve. A registry that is also used directly must call it itself.
func CheckRef(ref Ref) error {
	if ref.Name == "" {
		return fmt.Errorf("%w: a bundle needs a name", plugins.ErrInvalid)
	}
	return nil
}

// CheckFetch returns the plugins.ErrInvalid that Fetch must return for an invalid package, or nil. Serve calls it
// before Fetch. A registry that is also used directly must call it itself.
func CheckFetch(pkg Package) error {
	if pkg.Kind != KindMCPB {
		return fmt.Errorf("%w: only packages of kind %s can be fetched, not %q", plugins.ErrInvalid, KindMCPB, pkg.Kind)
	}
	return nil
}
