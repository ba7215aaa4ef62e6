package conformance

import (
	"fmt"
	"os"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestMain(m *testing.M) {
	if base := os.Getenv(clientOf); base != "" { // run by the suite as a client
		if err := runClient(base, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(harness.Main(m))
}
