package mcpregistry

import "github.com/Masterminds/semver/v3"

// later reports whether version a is newer than b. Versions that are not semantic count as older than semantic ones,
// and stay in the registry's order among themselves.
func later(a, b string) bool {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	if errA != nil || errB != nil {
		return errA == nil
	}
	return va.GreaterThan(vb)
}
