package apps

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAServerWhoseIdentityWasNotWrittenGetsOne(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	if err := os.WriteFile(filepath.Join(home, serverFile), nil, 0o600); err != nil { // as a full disk leaves it
		t.Fatal(err)
	}
	var first, again identity
	if err := first.ensure(t.Context(), home, records); err != nil || first.text() == "" {
		t.Fatalf("got %q, %v", first.text(), err)
	}
	if err := again.load(t.Context(), home, records); err != nil || again.text() != first.text() {
		t.Errorf("after a restart: got %q, %v, want %q", again.text(), err, first.text())
	}
}
