//go:build chaos

package cluster

import (
	"testing"
	"time"
)

func TestOpenSessionsContinueWhilePostgreSQLIsUnavailableForAMinute(t *testing.T) {
	callDuringOutage(t, 65*time.Second) // the result of a token check is cached for less time
}
