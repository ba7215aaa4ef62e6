package e2e

import (
	goflag "flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// binary is the executable under test.
var binary string

// databases is the one PostgreSQL of all tests here, when they run on one (testenv.Store).
var databases testenv.Databases

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == bundleArg { // this very executable is the Go bundle
		os.Exit(bundleMain(os.Args[2]))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// Whatever a server leaves behind becomes a child of this process, where the census finds it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "become the reaper of orphans:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "ropewalk-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary = os.Getenv("ROPEWALK_BINARY"); binary == "" {
		binary = filepath.Join(dir, "ropewalk")
		build := exec.Command("go", "build", fmt.Sprintf("-race=%v", raced), "-o", binary, "../../cmd/ropewalk")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the executable: %v\n%s", err, out)
			return 1
		}
	}
	_ = goflag.Set("test.parallel", "4") // most of what these tests do is wait
	code := databases.Around(m).Run()
	if left := survivors(descendants(os.Getpid()), time.Second); len(left) > 0 && code == 0 {
		fmt.Fprintf(os.Stderr, "the tests are over and these processes are left:\n%v\n", left)
		return 1
	}
	return code
}
