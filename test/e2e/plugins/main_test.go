package plugins

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// If the test executable has the file name boundName, it is the auth plugin in proof_test.go.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == boundName && os.Getenv(host.Cookie) != "" {
		auth.Serve(&bound{})
		return
	}
	os.Exit(harness.Main(m))
}
