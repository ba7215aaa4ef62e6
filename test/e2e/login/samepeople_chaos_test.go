//go:build chaos

package login

import (
	"testing"
	"time"
)

func TestFiftyUsersKeepTheirIdentityUnderLoad(t *testing.T) {
	changeProviders(t, 50, 100, 10*time.Second)
}
