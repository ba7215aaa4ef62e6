package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/backup"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// home is a place where the state can be stored: a file or a database.
type home struct {
	name string
	make func(t *testing.T) Options
}

func homes() []home {
	return []home{
		{"sqlite", func(t *testing.T) Options { return Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")} }},
		{"postgres", func(t *testing.T) Options { return Options{URL: core.Secret(newDatabase(t))} }},
	}
}

func openIn(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// furnish adds at least one row to every table.
func furnish(t *testing.T, s *Store) core.ConversationRef {
	t.Helper()
	alice := somebody(t, s, "alice")
	if err := s.SetOrgRole(t.Context(), alice.ID, core.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSetting(t.Context(), "models", `{"default":"a:b"}`); err != nil {
		t.Fatal(err)
	}
	if err := s.PutFiles(t.Context(), "sum", strings.NewReader("files")); err != nil {
		t.Fatal(err)
	}
	put(t, s, core.Installation{Workspace: core.DefaultWorkspaceID, Name: "app", Files: "sum", Env: map[string]core.Secret{"T": "s3cret"}, InstalledAt: time.UnixMilli(7).UTC()})
	if _, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: "k", User: alice, Workspace: core.DefaultWorkspaceID, Role: core.RoleMember}, "hash"); err != nil {
		t.Fatal(err)
	}
	if err := s.PutCookie(t.Context(), core.Cookie{Hash: "h", Identity: core.Identity{User: alice}, ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddPins(t.Context(), core.PinKey{Workspace: core.DefaultWorkspaceID, App: "app", Bundle: "b", Version: "1"}, map[string]string{"t": "{}"}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO accounts (id, workspace, owner, app, name, issuer, state, scopes, is_default, record, linked_at, expires_at)
			VALUES ('acc_1', 'ws_default', 'usr_1', 'app', 'main', 'https://idp.example', 'active', 'a b', 1, '{}', 7, 8)`,
		`INSERT INTO account_clients (workspace, app, issuer, redirect_uri, record) VALUES ('ws_default', 'app', 'https://idp.example', 'https://x/cb', '{}')`,
		`INSERT INTO account_revocations (id, record, attempts, due_at, unlinked_at) VALUES ('acc_2', '{}', 3, 7, 8)`,
		`INSERT INTO identities (issuer, subject, user_id, linked_at) VALUES ('https://now', 'a', '` + alice.ID + `', 7)`,
		`INSERT INTO views (workspace, name, definition) VALUES ('ws_default', 'support', '{"name":"support"}')`,
		`INSERT INTO account_lists (workspace, app, account, record) VALUES ('ws_default', 'app', 'acc_1', '{}')`,
		`INSERT INTO account_own_lists (account, record) VALUES ('acc_1', '{}')`,
		`INSERT INTO kept_lists (workspace, app, sum, record) VALUES ('ws_default', 'app', 's', '{}')`,
		`INSERT INTO standing_approvals (id, workspace, app, tool, definition, granted_by, created_at) VALUES ('sta_1', 'ws_default', 'app', 'app__t', 'hash', '{}', 7)`,
	} {
		if err := s.db.Exec(t.Context(), "preparing the test", statement); err != nil {
			t.Fatal(err)
		}
	}
	hello := said("user", "hello world")
	hello.Attachments = []core.Attachment{{ID: "att_1", Name: "a.png", MIMEType: "image/png", Content: []byte{0, 1, 2}}}
	ref := newConversation(t, s, "Ünïcode 日本", hello)
	if err := s.ChooseAccount(t.Context(), ref, "app", "acc_1"); err != nil {
		t.Fatal(err)
	}
	compactAll(t, s)
	grow(t, s, ref, []core.Message{{Role: "assistant", Content: "hi", Blocks: json.RawMessage(`[1]`)}}, core.Usage{Model: "m", InputTokens: 1, CostUSD: dollars(0.125)})
	grow(t, s, ref, nil, core.Usage{Model: "m", InputTokens: 1})
	return ref
}

// inventory returns the content of every table as text.
func inventory(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for _, table := range backup.Tables() {
		rows, err := s.db.ReadPool().QueryContext(t.Context(), `SELECT * FROM `+table)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]any, len(columns))
			pointers := make([]any, len(columns))
			for i := range values {
				pointers[i] = &values[i]
			}
			if err := rows.Scan(pointers...); err != nil {
				t.Fatal(err)
			}
			row := make(map[string]any)
			for i, c := range columns {
				row[c] = values[i]
			}
			all[table] = append(all[table], fmt.Sprint(row))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(all[table])
		if len(all[table]) == 0 {
			t.Errorf("%s is empty, so the test proves nothing", table)
		}
	}
	return all
}

func TestABackupOfARunningServerIsRestoredIntoEitherDatabase(t *testing.T) {
	for _, from := range homes() {
		for _, to := range homes() {
			t.Run("from "+from.name+" to "+to.name, func(t *testing.T) {
				o := from.make(t)
				s := openIn(t, o)
				ref := furnish(t, s)
				want := inventory(t, s)
				file := filepath.Join(t.TempDir(), "backup.db")
				if err := backup.Write(t.Context(), o.Location(), file); err != nil {
					t.Fatal(err)
				}
				grow(t, s, ref, []core.Message{said("user", "after the backup")})
				if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("the file: %v, %v", info, err)
				}
				onlyFile(t, file)

				o = to.make(t)
				if kept, err := backup.Restore(t.Context(), o.Location(), file, false); err != nil || kept != "" {
					t.Fatal(kept, err)
				}
				s = openIn(t, o)
				if got := inventory(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("got\n%v\nwant\n%v", got, want)
				}
				if found := find0(t, s, ref, "world"); found != 1 {
					t.Errorf("the search finds %d", found)
				}
				grow(t, s, ref, []core.Message{said("user", "and on it goes")})
			})
		}
	}
}

func onlyFile(t *testing.T, file string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("next to the backup there is %v, %v", entries, err)
	}
}

func TestABackupIsConsistentWhileOthersWrite(t *testing.T) {
	for _, from := range homes() {
		t.Run(from.name, func(t *testing.T) {
			o := from.make(t)
			s := openIn(t, o)
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			ref := newConversation(t, s, "")
			begun := make(chan struct{})
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					_, _ = s.AppendMessages(ctx, ref, []core.Message{said("user", "a"), said("assistant", "b")}, core.Usage{Model: "m", InputTokens: 1})
					if i == 3 {
						close(begun)
					}
				}
			})
			<-begun
			file := filepath.Join(t.TempDir(), "backup.db")
			err := backup.Write(t.Context(), o.Location(), file)
			stop()
			wg.Wait()
			if err != nil {
				t.Fatal(err)
			}
			copied := openAt(t, file)
			c, err := copied.Conversation(t.Context(), ref)
			if all := history(t, copied, ref); err != nil || len(all) != c.MessageCount || c.MessageCount < 8 || int64(c.MessageCount) != 2*c.InputTokens {
				t.Errorf("%d messages of %+v, %v", len(all), c, err)
			}
		})
	}
}

func TestABackupThatCannotBeMadeSaysWhyAndLeavesNothing(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	write(t, there, "precious")
	state := filepath.Join(t.TempDir(), "ropewalk.db")
	makeState(t, state)
	damaged := filepath.Join(t.TempDir(), "ropewalk.db")
	write(t, damaged, strings.Repeat("no database ", 1000))
	cases := map[string]struct {
		o    Options
		file string
		want string
	}{
		"onto a file that exists":           {Options{Path: state}, there, "the file already exists"},
		"into a folder that does not exist": {Options{Path: state}, filepath.Join(t.TempDir(), "no", "file"), "does not exist; create it"},
		"of a missing state":                {Options{Path: state + "x"}, filepath.Join(t.TempDir(), "b"), "there is nothing to back up"},
		"of a damaged state":                {Options{Path: damaged}, filepath.Join(t.TempDir(), "b"), "is damaged or is not a database"},
		"of an empty database":              {Options{URL: core.Secret(newDatabase(t))}, filepath.Join(t.TempDir(), "b"), "has schema 0, but this program requires"},
		"of a server that is down":          {Options{URL: "postgres://u:canary@127.0.0.1:1/d"}, filepath.Join(t.TempDir(), "b"), "cannot be reached"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := backup.Write(t.Context(), c.o.Location(), c.file)
			wantError(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the password is in %v", err)
			}
			entries, err := os.ReadDir(filepath.Dir(c.file))
			if err == nil && len(entries) > 0 && c.file != there {
				t.Errorf("%v was left", entries)
			}
		})
	}
	if raw, err := os.ReadFile(there); err != nil || string(raw) != "precious" {
		t.Errorf("the existing file is %q, %v", raw, err)
	}
	if _, err := os.Stat(state + "x"); err == nil {
		t.Error("backing up created a state")
	}
}

func TestARestoreThatIsRefusedChangesNothing(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	state := Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}
	makeState(t, state.Path, func(s *Store) error { return s.PutSetting(t.Context(), "from", "backup") })
	if err := backup.Write(t.Context(), state.Location(), good); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	from := func(statements ...string) string {
		file := variant(t, string(raw))
		do(t, file, statements...)
		return file
	}
	long := variant(t, string(raw))
	if err := os.Truncate(long, int64(len(raw))+1<<20); err != nil { // a file could claim to be a terabyte long without using any space
		t.Fatal(err)
	}
	garbage, cut, foreign, future, broken := variant(t, strings.Repeat("x", 5000)), variant(t, string(raw[:len(raw)/2])), variant(t, ""), variant(t, string(raw)), variant(t, string(raw))
	do(t, foreign, `CREATE TABLE something (a TEXT)`)
	do(t, future, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`)
	do(t, broken, `PRAGMA foreign_keys = 0`, `INSERT INTO members (workspace, user_id, role) VALUES ('ws_x', 'usr_x', 'admin')`)
	for _, to := range homes() {
		o := to.make(t)
		used := openIn(t, o)
		if err := used.PutSetting(t.Context(), "from", "before"); err != nil {
			t.Fatal(err)
		}
		running := map[string]string{"sqlite": "another server (process ", "postgres": "servers are using "}[to.name]
		for _, replace := range []bool{false, true} {
			_, err := backup.Restore(t.Context(), o.Location(), good, replace)
			wantError(t, err, running)
		}
		if got, err := used.Setting(t.Context(), "from"); err != nil || got != "before" {
			t.Errorf("%s: the running server has %q, %v", to.name, got, err)
		}
		if err := used.Close(); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct{ file, want string }{
			"a file that does not exist":                 {filepath.Join(t.TempDir(), "none"), "no such file"},
			"garbage":                                    {garbage, "is damaged or is not a backup; choose another one"},
			"a truncated file":                           {cut, "damaged"},
			"another database":                           {foreign, "it is not a ropewalk database"},
			"a backup from a newer version":              {future, "it was written by a newer ropewalk (schema 9000"},
			"a backup with dangling references":          {broken, "rows that refer to missing ones"},
			"a directory":                                {t.TempDir(), "not a regular file"},
			"extra bytes at the end":                     {long, "pages of 4096"},
			"an extra table":                             {from(`CREATE TABLE planted (a TEXT)`), `the table "planted"`},
			"an extra index":                             {from(`CREATE INDEX planted ON users (email)`), `the index "planted"`},
			"an extra index with an expression":          {from(`CREATE INDEX planted ON users (upper(email))`), `the index "planted"`},
			"an extra column":                            {from(`ALTER TABLE collections ADD COLUMN planted TEXT DEFAULT 'x'`), `its table "collections" differs from`},
			"an extra column in the table of migrations": {from(`ALTER TABLE goose_db_version ADD COLUMN planted TEXT DEFAULT 'x'`), `its table "goose_db_version" differs from`},
			"a missing index":                            {from(`DROP INDEX members_by_user`), "is missing"},
			"an extra trigger":                           {from(`CREATE TRIGGER evil AFTER INSERT ON messages BEGIN UPDATE users SET org_role = 'owner'; END`), `the trigger "evil"`},
			"a view that never ends": {from(`ALTER TABLE cookies RENAME TO elsewhere`,
				`CREATE VIEW cookies AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS hash FROM c`), `the view "cookies"`},
			"a missing checksum": {from(`DELETE FROM `+database.BackupSums+` WHERE part = 'settings'`, `UPDATE settings SET value = 'changed'`), "the checksum of part settings is missing"},
			"an unknown part":    {from(`INSERT INTO ` + database.BackupSums + ` VALUES ('users" WHERE 0 --', 0, 'x')`), "is not part of a backup"},
			"a valid backup":     {good, "already"},
		} {
			_, err := backup.Restore(t.Context(), o.Location(), c.file, false)
			wantError(t, err, c.want)
			if t.Failed() {
				t.Fatalf("%s, %s: %v", to.name, name, err)
			}
		}
		again := openIn(t, o)
		if got, err := again.Setting(t.Context(), "from"); err != nil || got != "before" {
			t.Errorf("%s: %q, %v", to.name, got, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A killed restore leaves a copy of the backup behind, which contains the backup's secrets and uses as much disk space.
func TestARestoreRemovesTheRemainsOfAKilledOne(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	state := Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}
	makeState(t, state.Path, func(s *Store) error { return s.PutSetting(t.Context(), "from", "backup") })
	if err := backup.Write(t.Context(), state.Location(), good); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(state.Path), ".restore-123")
	write(t, left, "secrets")
	if _, err := backup.Restore(t.Context(), state.Location(), good, true); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(state.Path), ".restore-*")); len(found) > 0 {
		t.Errorf("the remaining files are %q", found)
	}
}

// If root restores a backup, the database must belong to the owner of the home. Otherwise, the server could not open it.
func TestStateRestoredByRootBelongsToTheOwnerOfItsDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	good := filepath.Join(t.TempDir(), "good")
	state := Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}
	makeState(t, state.Path, func(s *Store) error { return s.PutSetting(t.Context(), "from", "backup") })
	if err := backup.Write(t.Context(), state.Location(), good); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "home")
	if err := errors.Join(os.Mkdir(into, 0o700), os.Chown(into, 65534, 65533)); err != nil {
		t.Fatal(err)
	}
	to := Options{Path: filepath.Join(into, "ropewalk.db")}
	if _, err := backup.Restore(t.Context(), to.Location(), good, false); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{to.Path, to.Path + ".lock"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != 65534 || owner.Gid != 65533 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %+v, mode %v", file, owner, info.Mode())
		}
	}
}

func TestARestoreReplacesTheStateAndKeepsAnUnrelatedFile(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	state := Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}
	makeState(t, state.Path, func(s *Store) error { return s.PutSetting(t.Context(), "from", "backup") })
	if err := backup.Write(t.Context(), state.Location(), good); err != nil {
		t.Fatal(err)
	}
	for _, to := range homes() {
		for _, damage := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, damaged: %v", to.name, damage), func(t *testing.T) {
				o := to.make(t)
				s := openIn(t, o)
				if err := s.PutSetting(t.Context(), "from", "before"); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if damage && o.Path != "" {
					write(t, o.Path, strings.Repeat("no database ", 1000))
				}
				kept, err := backup.Restore(t.Context(), o.Location(), good, true)
				if err != nil {
					t.Fatal(err)
				}
				s = openIn(t, o)
				if got, err := s.Setting(t.Context(), "from"); err != nil || got != "backup" {
					t.Errorf("got %q, %v", got, err)
				}
				if o.Path != "" && !damage {
					old := openAt(t, kept)
					if got, err := old.Setting(t.Context(), "from"); err != nil || got != "before" {
						t.Errorf("the replaced state, which is kept, has %q, %v", got, err)
					}
				}
			})
		}
	}
}

// transient lists the tables that a backup leaves out, because their content is short-lived.
var transient = []string{"counters", "notices", "runs", "unfinished", "queued", "questions", "logins", "approvals", "revocations", "used_messages", "results", "kept_results", "tool_verdicts", "tasks"}

func TestABackupContainsEveryTable(t *testing.T) {
	s := open(t)
	rows, err := s.db.ReadPool().QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(append(backup.Tables(), transient...), name) {
			t.Errorf("table %s is neither in backups nor named as transient", name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func variant(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "variant")
	write(t, path, content)
	return path
}

func do(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := database.OpenSQLite(path, database.Copier())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}
