package sample

import (
	"os"
	"path/filepath"
	"testing"
)

// The files must have these modes from the start. If they were changed later, the app's files would be seen as changed.
func TestAnAppsOwnUserCanReadTheBundle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sample")
	if err := WriteBundle(dir, "/usr/bin/ropewalk", "sample", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, filepath.Join(dir, "manifest.json"): 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %v", path, info, err, mode)
		}
	}
}
