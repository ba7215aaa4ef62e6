package store

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/backup"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestManyServersMayStartOnOneEmptyDatabaseAtOnce(t *testing.T) {
	url := newDatabase(t)
	var wg sync.WaitGroup
	stores := make([]*Store, 6)
	for i := range stores {
		wg.Go(func() {
			var err error
			if stores[i], err = Open(t.Context(), Options{URL: core.Secret(url)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s == nil {
			continue
		}
		if all, err := s.AllWorkspaces(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%+v, %v, want the default workspace alone", all, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestServersOnOneDatabaseSeeEachOthersWrites(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	ref := newConversation(t, a, "shared", said("user", "words"))
	put(t, a, core.Installation{Workspace: core.DefaultWorkspaceID, Name: "app"})
	if got := history(t, b, ref); len(got) != 1 {
		t.Errorf("%d messages", len(got))
	}
	if all, err := b.Installations(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	var wg sync.WaitGroup
	for range 10 {
		for _, s := range []*Store{a, b} {
			wg.Go(func() {
				if _, err := s.AppendMessages(t.Context(), ref, []core.Message{said("user", "x"), said("assistant", "y")}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if got := history(t, a, ref); len(got) != 41 {
		t.Errorf("%d messages, want 41", len(got))
	}
}

func TestTheErrorForAnUnusableDatabaseSaysWhatToDoWithoutThePassword(t *testing.T) {
	good := newDatabase(t)
	if err := openURL(t, good).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := rawURL(t, good).ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	o := Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")}
	if err := errors.Join(openIn(t, o).Close(), backup.Write(t.Context(), o.Location(), file)); err != nil {
		t.Fatal(err)
	}
	_, err := backup.Restore(t.Context(), Options{URL: core.Secret(good)}.Location(), file, true)
	wantError(t, err, " was written by a newer ropewalk", "recreate the database (dropdb, createdb)")
	cases := map[string]struct{ url, want string }{
		"no address":                    {"postgres://u:canary@host:port/d", "storage.url is not a PostgreSQL address"},
		"a missing file":                {"postgres://u:canary@h/d?sslmode=verify-full&sslrootcert=/absent.pem", "storage.url is not a PostgreSQL address"},
		"nothing listens":               {"postgres://u:canary@127.0.0.1:1/d", "cannot be reached at the moment"},
		"no such database":              {strings.Replace(good, "/test_", "/canary_", 1), "there is no such database"},
		"a schema from a newer version": {good, "it was written by a newer ropewalk (schema 9000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), Options{URL: core.Secret(c.url)})
			if err == nil {
				_ = s.Close()
			}
			wantError(t, err, c.want)
			if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), "canary_", ""), "canary") {
				t.Errorf("the password is in %v", err)
			}
		})
	}
}

func TestAnUnreachablePostgresIsUnavailableAndRecovers(t *testing.T) {
	server := testenv.StartPostgres(t)
	s := openURL(t, server.URL)
	ref := newConversation(t, s, "", said("user", "kept"))
	server.Kill()
	_, append := s.AppendMessages(t.Context(), ref, []core.Message{said("user", "lost")})
	_, read := s.Messages(t.Context(), ref)
	_, list := s.Conversations(t.Context(), ref.Workspace, ref.Owner, core.ConversationQuery{})
	_, setting := s.Setting(t.Context(), "x")
	wantCodes(t, core.CodeUnavailable, map[string]error{
		"append": append, "read": read, "list": list, "setting": setting, "put": s.PutSetting(t.Context(), "a", "b"),
	})
	server.Start()
	if got := history(t, s, ref); len(got) != 1 || got[0].Content != "kept" {
		t.Errorf("after the server returned: %+v", got)
	}
	grow(t, s, ref, []core.Message{said("user", "new")})
}
