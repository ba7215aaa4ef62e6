package tools_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/process"
)

// The test binary is also the shim for the processes it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		os.Exit(process.ShimMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}
