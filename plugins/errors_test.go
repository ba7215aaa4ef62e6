package plugins_test

import (
	"errors"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestABackendErrorIsUnavailableAndKeepsItsText(t *testing.T) {
	refused := errors.New("connection refused")
	err := plugins.Unavailable(refused)
	if !errors.Is(err, plugins.ErrUnavailable) || !errors.Is(err, refused) || err.Error() != "unavailable: connection refused" {
		t.Errorf("got %v", err)
	}
	if err := plugins.Unavailable(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}
