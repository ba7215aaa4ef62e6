package backup

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/store/database"
)

func TestAFullDiskErrorNamesTheBackupsDisk(t *testing.T) {
	db, err := database.OpenSQLite(filepath.Join(t.TempDir(), "small.db"), database.Copier())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "PRAGMA max_page_count = 1; CREATE TABLE a (b)"); err == nil {
		t.Fatal("a database of one page accepted a table")
	} else if got := explained("/srv/backups/one.db", err).Error(); !strings.Contains(got, "the disk of /srv/backups is full") || strings.Contains(got, "database's disk") {
		t.Errorf("got %q", got)
	}
}
