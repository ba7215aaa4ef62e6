//go:build chaos

package login

import (
	"testing"
	"time"
)

func TestFiftyPeopleStayWhoTheyAreUnderLoad(t *testing.T) {
	changeProviders(t, 50, 100, 10*time.Second)
}
