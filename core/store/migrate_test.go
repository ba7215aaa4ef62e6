package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// What the first version wrote must be there after every later migration, on either database.
func TestAStateOfTheFirstSchemaIsBroughtUpToDateWithWhatItHolds(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "ropewalk.db"), newDatabase(t)
	file, err := database.OpenSQLite(path, database.Visitor())
	if err != nil {
		t.Fatal(err)
	}
	for dialect, db := range map[goose.Dialect]*sql.DB{goose.DialectSQLite3: file, goose.DialectPostgres: rawURL(t, url)} {
		provider, err := database.Migrations(dialect, db)
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

// Conversations of before they had numbers are found afterwards, and can be packed.
func TestConversationsThatHadNoNumbersGetThem(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "ropewalk.db"), newDatabase(t)
	for _, o := range []Options{{Path: path}, {URL: core.Secret(url)}} {
		first, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	file, err := database.OpenSQLite(path, database.Visitor())
	if err != nil {
		t.Fatal(err)
	}
	for dialect, db := range map[goose.Dialect]*sql.DB{goose.DialectSQLite3: file, goose.DialectPostgres: rawURL(t, url)} {
		provider, err := database.Migrations(dialect, db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := provider.DownTo(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		furnishOld(t, db)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{openAt(t, path), openURL(t, url)} {
		talk(t, s, "new", said("user", "hello"))
		for range 2 {
			if got := found(t, s, "hello "); got != "new, old0, old1, old2" {
				t.Errorf("found %s", got)
			}
			compactAll(t, s)
		}
		if n := count(t, s, `SELECT COUNT(DISTINCT number) FROM conversations WHERE number BETWEEN 1 AND 4`); n != 4 {
			t.Errorf("%d numbers of four conversations", n)
		}
	}
}

// furnishOld writes conversations as schema 7 has them.
func furnishOld(t *testing.T, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), `INSERT INTO shelves (id, workspace, owner, conversations) VALUES (-5, $1, $2, 3)`,
		core.DefaultWorkspaceID, core.Owner().User.ID); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := db.ExecContext(t.Context(), `INSERT INTO conversations (id, shelf, title, last_model, created_at, updated_at, message_count, preview, input_tokens, output_tokens)
			VALUES ($1, -5, $2, '', $3, 9, 0, '', 0, 0)`, 70-i, fmt.Sprintf("old%d", i), 1+i%2); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"hello", fmt.Sprintf("old%d", i)} {
			if _, err := db.ExecContext(t.Context(), `INSERT INTO words (conversation, word, shelf) VALUES ($1, $2, -5)`, 70-i, []byte(word)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestConversationsWrittenBeforeAreShownWithOneAssistantMessagePerRun(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "ropewalk.db"), newDatabase(t)
	for _, o := range []Options{{Path: path}, {URL: core.Secret(url)}} {
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		talk(t, s, "old", said("user", "do it"), said("assistant", "I will."), said("assistant", "Done."), said("user", "thanks"), said("assistant", "Welcome."))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	file, err := database.OpenSQLite(path, database.Visitor())
	if err != nil {
		t.Fatal(err)
	}
	for dialect, db := range map[goose.Dialect]*sql.DB{goose.DialectSQLite3: file, goose.DialectPostgres: rawURL(t, url)} {
		provider, err := database.Migrations(dialect, db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := provider.DownTo(t.Context(), 11); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{openAt(t, path), openURL(t, url)} {
		page, err := s.Conversations(t.Context(), core.DefaultWorkspaceID, core.Owner().User.ID, core.ConversationQuery{})
		if err != nil || len(page.Conversations) != 1 || page.Conversations[0].MessageCount != 4 {
			t.Fatalf("%+v, %v", page, err)
		}
		all := history(t, s, core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: core.Owner().User.ID, ID: page.Conversations[0].ID})
		var continues []bool
		for _, m := range all {
			continues = append(continues, m.Continues)
		}
		if fmt.Sprint(continues) != "[false false true false false]" {
			t.Errorf("continued: %v", continues)
		}
	}
}
