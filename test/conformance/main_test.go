package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// binary is the executable under test, everything the app behind it.
var binary, everything string

// databases is the one PostgreSQL of all tests here, when they run on one (testenv.Store).
var databases testenv.Databases

func TestMain(m *testing.M) {
	if base := os.Getenv(clientOf); base != "" { // run by the suite, as a client
		if err := runClient(base, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ropewalk-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	everything = filepath.Join(dir, "everything-server")
	wanted := map[string]string{everything: "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"}
	if binary = os.Getenv("ROPEWALK_BINARY"); binary == "" {
		binary = filepath.Join(dir, "ropewalk")
		wanted[binary] = "../../cmd/ropewalk"
	}
	for path, of := range wanted {
		if out, err := exec.Command("go", "build", "-trimpath", "-o", path, of).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", of, err, out)
			return 1
		}
	}
	return databases.Around(m).Run()
}
