//go:build chaos

package cluster

import (
	"testing"
	"time"
)

func TestServersOfTwoVersionsServeOneDatabaseForTenMinutes(t *testing.T) {
	upgradeUnderLoad(t, 75*time.Second) // the test pauses eight times
}
