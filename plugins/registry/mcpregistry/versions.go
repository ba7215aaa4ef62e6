package mcpregistry

import "github.com/Masterminds/semver/v3"

// later reports whether version a is newer than b. What is no semantic version is older than what
// is one, and keeps the order of the registry among its like.
func later(a, b string) bool {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	if errA != nil || errB != nil {
		return errA == nil
	}
	return va.GreaterThan(vb)
}
