package harness

import (
	goflag "flag"
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// ropewalk is the executable under test. If the tests run with the race detector, so do all servers.
var ropewalk = testenv.Ropewalk{Race: Race}

// Databases is the PostgreSQL server for a package's tests, if they use PostgreSQL (testenv.Store).
var Databases testenv.Databases

// Main runs the tests of a package and returns the exit code. The TestMain function of each package only calls
// os.Exit(harness.Main(m)). The test executable is also the Go bundle that the tests install.
func Main(m *testing.M) int {
	if len(os.Args) > 2 && os.Args[1] == bundleArg {
		syscall.Exit(bundleMain(os.Args[2])) // os.Exit is slow under the race detector
	}
	// Processes that a server leaves behind become children of this process, so the harness can find them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "cannot become the parent of orphaned processes:", err)
		return 1
	}
	_ = goflag.Set("test.parallel", "4") // these tests wait most of the time
	code := Databases.Around(m).Run()
	if left := Survivors(Descendants(os.Getpid()), Timeout); len(left) > 0 && code == 0 {
		fmt.Fprintf(os.Stderr, "the tests have ended, but these processes are still running:\n%v\n", left)
		return 1
	}
	return code
}

// Binary returns the path of the executable under test.
func Binary(t testing.TB) string {
	t.Helper()
	return ropewalk.Path(t)
}
