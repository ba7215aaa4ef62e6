package process

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestTheProbeSaysWhyNamespacesCannotBeCreated(t *testing.T) {
	t.Parallel()
	refused := &StartError{Path: "/x", Reason: "cannot start \"/x\": fork/exec: operation not permitted", cause: fmt.Errorf("fork/exec: %w", syscall.EPERM)}
	for _, c := range []struct {
		err      error
		inChroot bool
		says     string
		chroot   bool
	}{
		{refused, true, "the server runs in a chroot", true},
		{refused, false, "does not allow user namespaces: operation not permitted", false},
		{&StartError{Path: "/x", Reason: "cannot start \"/x\": no space left on device", cause: syscall.ENOSPC}, true, "cannot create namespaces: cannot start", false},
	} {
		reason, chroot := withoutNamespaces(c.err, c.inChroot)
		if !strings.Contains(reason, c.says) || chroot != c.chroot || strings.Contains(reason, "fork/exec") {
			t.Errorf("%v, in a chroot %v: %q, %v", c.err, c.inChroot, reason, chroot)
		}
	}
}
