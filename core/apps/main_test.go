package apps

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/process"
)

// The test binary is also the shim of the processes it starts, and the bundles they run. Bundles
// end without the second for which a binary with the race detector lingers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case bundleArg:
			syscall.Exit(bundleMain(os.Args[2:]))
		case process.ShimArg:
			os.Exit(process.ShimMain(os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}
