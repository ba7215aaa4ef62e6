package store

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"go.uber.org/goleak"
)

// The test binary is also the child that writes until it is killed (crash_test.go).
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == writeUntilKilled {
		os.Exit(writeForever(os.Args[2]))
	}
	goleak.VerifyTestMain(databases.Around(m))
}

func open(t *testing.T) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "ropewalk.db"))
}

func openAt(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEveryFileOfTheStateIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	openAt(t, path)
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("want the database, its log and its lock, got %v, %v", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", filepath.Base(f), info.Mode().Perm())
		}
	}
}

func TestASecondServerForTheSameHomeIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	first, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Path: path})
	wantError(t, err, path, "another server (process ", "--home")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, path)
}

func TestAHomeBelongsToOneServerEvenIfTheStateIsElsewhere(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "ropewalk.db"), core.Secret(newDatabase(t))
	one, err := Open(t.Context(), Options{Path: path, URL: url})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Path: path, URL: url})
	wantError(t, err, path, "another server (process ", "--home")
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), Options{Path: path, URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that is not used: %v", err)
	}
}

func TestTheErrorForAnUnusableStateSaysWhatToDo(t *testing.T) {
	cases := map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"garbage in place of a database": {
			func(t *testing.T, path string) { write(t, path, strings.Repeat("no database ", 1000)) }, "is damaged or is not a database",
		},
		"a database whose pages were overwritten": {
			func(t *testing.T, path string) {
				makeState(t, path)
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				write(t, path, string(raw[:100])+strings.Repeat("\xff", len(raw)-100))
			}, "is damaged or is not a database",
		},
		"a schema from the future": {
			func(t *testing.T, path string) {
				makeState(t, path)
				db := raw(t, path)
				if _, err := db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`); err != nil {
					t.Fatal(err)
				}
			}, "it was written by a newer ropewalk (schema 9000, but this program supports only ",
		},
		"a folder that does not exist": {
			func(t *testing.T, path string) {
				if err := os.RemoveAll(filepath.Dir(path)); err != nil {
					t.Fatal(err)
				}
			}, "no such file or directory",
		},
		"a folder in place of the file": {
			func(t *testing.T, path string) {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}, "is a directory",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "ropewalk.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path)
			s, err := Open(t.Context(), Options{Path: path})
			if err == nil {
				_ = s.Close()
			}
			wantError(t, err, path, c.want)
		})
	}
}

func TestTheErrorForADatabaseLockedByAnotherProgramSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	s := openAt(t, path)
	if _, err := s.db.WritePool().ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	tx, err := raw(t, path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `DELETE FROM settings`); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.PutSetting(t.Context(), "a", "b"), "another program has locked the database")
}

func TestAFullDiskLeavesTheOldStateAndAClearError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	s := openAt(t, path)
	if err := s.PutSetting(t.Context(), "kept", "old"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.WritePool().ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // its current size
		t.Fatal(err)
	}
	wantError(t, s.PutSetting(t.Context(), "kept", strings.Repeat("x", 1<<20)), "the database's disk is full, so nothing was changed")
	if got, err := s.Setting(t.Context(), "kept"); err != nil || got != "old" {
		t.Fatalf("got %q, %v, want the old value", got, err)
	}
	if _, err := s.db.WritePool().ExecContext(t.Context(), "PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSetting(t.Context(), "kept", "new"); err != nil {
		t.Fatalf("with space again: %v", err)
	}
}

func TestAReadOnlyDiskLeavesTheOldStateAndAClearError(t *testing.T) {
	s := open(t)
	if err := s.PutSetting(t.Context(), "kept", "old"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.WritePool().ExecContext(t.Context(), "PRAGMA query_only = 1"); err != nil { // makes SQLite refuse writes
		t.Fatal(err)
	}
	wantError(t, s.PutSetting(t.Context(), "kept", "new"), "is read-only, so nothing was changed")
	if got, err := s.Setting(t.Context(), "kept"); err != nil || got != "old" {
		t.Fatalf("got %q, %v, want the old value", got, err)
	}
}

func TestWritesAreSyncedToDiskBeforeTheyAreAcknowledged(t *testing.T) {
	s := open(t)
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
		var got string
		if err := s.db.WritePool().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", pragma, got, err, want)
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	s := open(t)
	if _, err := s.db.ReadPool().ExecContext(t.Context(), `DELETE FROM users`); err == nil {
		t.Fatal("a read connection wrote")
	}
}

func TestSettingsSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a #? %41", "ropewalk.db") // characters that are special in a URI
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	makeState(t, path, func(s *Store) error { return s.PutSetting(t.Context(), "model", "a") })
	makeState(t, path, func(s *Store) error { return s.PutSetting(t.Context(), "model", "b") })
	s := openAt(t, path)
	if got, err := s.Setting(t.Context(), "model"); err != nil || got != "b" {
		t.Fatalf("got %q, %v", got, err)
	}
	_, err := s.Setting(t.Context(), "nothing")
	wantError(t, err, "not_found")
}

// makeState opens the state, calls do with it, and closes it.
func makeState(t *testing.T, path string, do ...func(*Store) error) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range do {
		if err := f(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// raw opens the file like another program would.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := database.OpenSQLite(path, database.Visitor())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q should contain %q", err, part)
		}
	}
}
