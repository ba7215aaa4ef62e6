package store

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestAFileThatCannotBeOpenedIsNotReportedAsAnUnavailableServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "ropewalk.db")
	_, err := Open(t.Context(), Options{Path: path})
	if err == nil || core.CodeOf(err) == core.CodeUnavailable || strings.Contains(err.Error(), "PostgreSQL") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
