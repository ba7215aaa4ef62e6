package testenv

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// NeedsNamespaces skips a test in a chroot, where the kernel does not allow user namespaces. On any other
// machine without them the test fails.
func NeedsNamespaces(t testing.TB) {
	t.Helper()
	skipIfShort(t, "user namespaces")
	if sandbox.InChroot() {
		t.Skip("these tests run in a chroot, where the kernel does not allow user namespaces (user_namespaces(7))")
	}
}
