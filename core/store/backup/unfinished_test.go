package backup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// A killed backup leaves a copy of the state behind, with its secrets. The next backup into the same directory removes
// the copy. It keeps the copies of backups that are still being written, and other files with similar names.
func TestABackupRemovesTheRemainsOfAKilledOne(t *testing.T) {
	state := filepath.Join(t.TempDir(), "ropewalk.db")
	db, err := database.OpenSQLite(state, database.Copier())
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), goose.DialectSQLite3, db, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	dir, elsewhere := t.TempDir(), t.TempDir()
	killed, err := beginIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	running, err := beginIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []*unfinished{killed, running} {
		if err := createEmpty(u.file()); err != nil {
			t.Fatal(err)
		}
	}
	if err := killed.lock.Close(); err != nil { // as at the end of its process
		t.Fatal(err)
	}
	precious := filepath.Join(elsewhere, "precious")
	if err := createEmpty(precious); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, ".ropewalk-backup-link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), database.Location{Path: state}, filepath.Join(dir, "backup")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{killed.dir: false, running.file(): true, link: true, precious: true, filepath.Join(dir, "backup"): true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := running.remove(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the remaining files are %v, %v", left, err)
	}
}
