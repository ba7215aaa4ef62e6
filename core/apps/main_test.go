package apps

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/process"
)

// The test binary also serves as the shim of the processes that it starts, and as the bundles that they run. Bundles
// exit immediately, without the delay of one second that the race detector adds.
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
