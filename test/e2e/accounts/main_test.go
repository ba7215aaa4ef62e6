package accounts

import (
	"os"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
