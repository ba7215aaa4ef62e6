package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the executable under test.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ropewalk-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary = os.Getenv("ROPEWALK_BINARY"); binary == "" {
		binary = filepath.Join(dir, "ropewalk")
		if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/ropewalk").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the executable: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}
