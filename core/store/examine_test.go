package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

func TestStateIsExaminedWithoutChangingIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ropewalk.db")
	at := database.Location{Path: path}
	if err := database.Examine(t.Context(), at); err != nil {
		t.Errorf("before the first start: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was created")
	}
	makeState(t, path)
	whole := content(t, path)
	if err := database.Examine(t.Context(), at); err != nil {
		t.Errorf("an intact state: %v", err)
	}
	if !bytes.Equal(content(t, path), whole) {
		t.Error("the file was changed")
	}

	write(t, path, string(whole[:len(whole)/2])+strings.Repeat("\xff", len(whole)-len(whole)/2))
	wantError(t, database.Examine(t.Context(), at), "the file is damaged", "restore a backup")
	write(t, path, strings.Repeat("no database ", 1000))
	wantError(t, database.Examine(t.Context(), at), "is damaged or is not a database", "restore a backup")
	write(t, path, string(whole))
	if _, err := raw(t, path).ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`); err != nil {
		t.Fatal(err)
	}
	wantError(t, database.Examine(t.Context(), at), "it was written by a newer ropewalk (schema 9000, but this program supports only ")
}

func TestLostStateNextToAppsIsReported(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "apps", "notes", "bundle"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantError(t, database.Examine(t.Context(), database.Location{Path: filepath.Join(home, "ropewalk.db")}), "the file is missing or empty")
}

func TestADatabaseThatIsUnavailableIsNamedWithoutItsPassword(t *testing.T) {
	err := database.Examine(t.Context(), database.Location{URL: core.Secret("postgres://ada:canary@127.0.0.1:1/state")})
	wantError(t, err, "PostgreSQL (storage.url) cannot be reached", "connection refused")
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error shows the password: %v", err)
	}
	if text := err.Error(); strings.Count(text, "connection refused") != 1 || strings.Contains(text, "\n") {
		t.Errorf("the cause does not appear exactly once, on one line: %v", err)
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
