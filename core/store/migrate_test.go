package store

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
)

// What the first version wrote must be there after every later migration, on either database.
func TestAStateOfTheFirstSchemaIsBroughtUpToDateWithWhatItHolds(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "ropewalk.db"), database(t)
	file, err := openSQLite(path, writer())
	if err != nil {
		t.Fatal(err)
	}
	for dialect, db := range map[goose.Dialect]*sql.DB{goose.DialectSQLite3: file, goose.DialectPostgres: rawURL(t, url)} {
		provider, err := migrations(dialect, db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := provider.UpTo(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), `INSERT INTO users (id, issuer, subject, email, display_name, org_role, created_at)
			VALUES ('usr_old', 'https://idp', 'old', 'a@b.c', 'Old', 'admin', 1)`); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{openAt(t, path), openURL(t, url)} {
		u, err := s.User(t.Context(), "usr_old")
		if want := (core.User{ID: "usr_old", Email: "a@b.c", DisplayName: "Old", OrgRole: core.RoleAdmin}); err != nil || u != want {
			t.Errorf("got %+v, %v, want %+v", u, err, want)
		}
	}
}
