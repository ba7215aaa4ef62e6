package conformance

import (
	"fmt"
	"os"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// ropewalk is the executable under test.
var ropewalk testenv.Ropewalk

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
	os.Exit(databases.Around(m).Run())
}
