package apps

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// The test binary also serves as the shim of the processes that it starts, and as the bundles that they run. Bundles
// exit immediately, without the delay of one second that the race detector adds.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == bundleArg {
		syscall.Exit(bundleMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}
