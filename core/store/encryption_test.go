package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/backup"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// secretOfApps is part of every secret in this test. The test stores a secret in every place where an app can have one.
const secretOfApps = "canary-7f3a"

func furnishSecrets(t *testing.T, s *Store) {
	t.Helper()
	put(t, s,
		core.Installation{Workspace: core.DefaultWorkspaceID, Name: "local", Env: map[string]core.Secret{"TOKEN": secretOfApps + "-env"}, InstalledAt: time.UnixMilli(7).UTC()},
		core.Installation{
			Workspace: core.DefaultWorkspaceID, Name: "remote", InstalledAt: time.UnixMilli(8).UTC(),
			Remote: &core.Remote{
				URL: "https://x/?key=" + secretOfApps + "-url", Type: "sse", Headers: map[string]core.Secret{"X": secretOfApps + "-header"},
				Auth: core.RemoteAuth{Type: "header", Name: "X-Key", Value: secretOfApps + "-value", Token: secretOfApps + "-token"},
			},
		},
		core.Installation{ // deleted, but its pages remain in the file
			Workspace: core.DefaultWorkspaceID, Name: "gone", ID: "gone", InstalledAt: time.UnixMilli(9).UTC(),
			Env: map[string]core.Secret{"TOKEN": core.Secret(strings.Repeat(secretOfApps, 20_000))},
		},
	)
	if err := s.DeleteInstallation(t.Context(), core.DefaultWorkspaceID, "gone", "gone"); err != nil {
		t.Fatal(err)
	}
	if !s.Encrypts() {
		return
	}
	for _, name := range []string{"kept", "unlinked"} {
		a, err := s.LinkAccount(t.Context(), core.Account{
			Workspace: core.DefaultWorkspaceID, Owner: "usr_owner", App: "remote", Name: name, State: core.AccountActive, LinkedAt: time.UnixMilli(9),
			Grant: core.Grant{AccessToken: secretOfApps + "-access", RefreshToken: secretOfApps + "-refresh", Client: core.OAuthClient{ID: "c", Secret: secretOfApps + "-client"}},
		})
		if err == nil && name == "unlinked" {
			_, err = s.UnlinkAccount(t.Context(), a.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PutOAuthClient(t.Context(), core.ClientRegistration{Workspace: core.DefaultWorkspaceID, App: "remote", Issuer: "i", RedirectURI: "r"}, core.OAuthClient{ID: "c", Secret: secretOfApps + "-registered"}); err != nil {
		t.Fatal(err)
	}
}

func keysOf(t *testing.T, texts ...core.Secret) *seal.Keys {
	t.Helper()
	var all []string
	for _, text := range texts {
		all = append(all, text.Reveal())
	}
	k, err := seal.Parse(core.Secret(strings.Join(all, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// opening opens the state, calls use with it, and closes it again.
func opening(t *testing.T, o Options, use func(s *Store)) {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	use(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// hasSecrets returns where a secret of an app can be read: in files of the state and of a backup, or in a database.
func hasSecrets(t *testing.T, o Options) (found []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := backup.Write(t.Context(), o.Location(), file); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(file), filepath.Dir(o.Path)} {
		if dir == "." {
			continue
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(secretOfApps)) {
				found = append(found, filepath.Base(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if o.URL != "" {
		var records string
		if err := rawURL(t, o.URL.Reveal()).QueryRowContext(t.Context(), `SELECT string_agg(record, '') FROM installations`).Scan(&records); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(records, secretOfApps) {
			found = append(found, "installations")
		}
	}
	return found
}

func records(t *testing.T, s *Store) string {
	t.Helper()
	all, err := s.Installations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, in := range all {
		raw, err := json.Marshal(toRecord(in))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", in.Name, raw)
	}
	return b.String()
}

func TestASecretIsNotInAnyFileOfTheStateOrOfABackup(t *testing.T) {
	for _, h := range homes() {
		t.Run(h.name, func(t *testing.T) {
			o := h.make(t)
			var want string
			opening(t, o, func(s *Store) { furnishSecrets(t, s); want = records(t, s) })
			if found := hasSecrets(t, o); len(found) < 2 { // the secrets must be found in the state and the backup; otherwise the search itself is broken
				t.Fatalf("without a key, the secrets are only in %v", found)
			}
			old, present := seal.NewKey(), seal.NewKey()
			for _, keys := range []*seal.Keys{keysOf(t, old), keysOf(t, present, old), keysOf(t, present)} { // encrypt the plain text state, rotate, drop the old key
				o.Keys = keys
				opening(t, o, func(s *Store) {
					if got := records(t, s); got != want {
						t.Errorf("got\n%s\nwant\n%s", got, want)
					}
					if _, err := s.ChangeInstallation(t.Context(), core.DefaultWorkspaceID, "local", func(*core.Installation) error { return nil }); err != nil {
						t.Error(err)
					}
					if found := hasSecrets(t, o); len(found) > 0 {
						t.Errorf("while the server runs, the secrets are in %v", found)
					}
				})
				if found := hasSecrets(t, o); len(found) > 0 {
					t.Errorf("the secrets are in %v", found)
				}
			}
		})
	}
}

func TestWithoutTheRightKeyTheStateIsNotOpenedAndNothingIsLost(t *testing.T) {
	for _, h := range homes() {
		t.Run(h.name, func(t *testing.T) {
			o := h.make(t)
			right := keysOf(t, seal.NewKey())
			o.Keys = right
			var want string
			opening(t, o, func(s *Store) { furnishSecrets(t, s); want = records(t, s) })
			for name, keys := range map[string]*seal.Keys{"another key": keysOf(t, seal.NewKey()), "no key": nil} {
				o.Keys = keys
				_, err := Open(t.Context(), o)
				wantError(t, err, "the record of app local of ws_default cannot be read: it is encrypted with the key "+right.ID())
				if err != nil && !strings.Contains(err.Error(), "storage.keyFile") {
					t.Errorf("%s: the error should include what to do: %v", name, err)
				}
			}
			o.Keys = right
			opening(t, o, func(s *Store) {
				if got := records(t, s); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

func TestABackupIsRestoredWithItsKeyIntoEitherDatabase(t *testing.T) {
	old, present := seal.NewKey(), seal.NewKey()
	o := homes()[0].make(t)
	o.Keys = keysOf(t, old)
	var want string
	opening(t, o, func(s *Store) { furnishSecrets(t, s); want = records(t, s) })
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := backup.Write(t.Context(), o.Location(), file); err != nil {
		t.Fatal(err)
	}
	wantError(t, backup.CheckKeys(t.Context(), file, keysOf(t, present)), "it is encrypted with the key "+o.Keys.ID())
	wantError(t, backup.CheckKeys(t.Context(), file, nil), "it is encrypted with the key "+o.Keys.ID())
	for _, h := range homes() {
		to := h.make(t)
		to.Keys = keysOf(t, present, old)
		opening(t, to, func(*Store) {}) // what a server creates on its first start is not treated as existing state
		replace := to.URL == ""
		if err := backup.CheckKeys(t.Context(), file, to.Keys); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), to.Location(), file, replace); err != nil {
			t.Fatal(err)
		}
		opening(t, to, func(s *Store) {
			if got := records(t, s); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", h.name, got, want)
			}
		})
		to.Keys = keysOf(t, present) // the start has encrypted everything with the first key
		opening(t, to, func(*Store) {})
	}
}

func TestAnInterruptedRewriteIsCompletedAtTheNextStart(t *testing.T) {
	o := homes()[0].make(t)
	opening(t, o, func(s *Store) { furnishSecrets(t, s) })
	keys := keysOf(t, seal.NewKey())
	opening(t, o, func(s *Store) { // like a server that stops between the two steps
		if n, err := seal.Renew(t.Context(), s.db, keys); n != 2 || err != nil {
			t.Fatal(n, err)
		}
	})
	if found := hasSecrets(t, o); len(found) == 0 {
		t.Fatal("the files have no secret even before they are rewritten")
	}
	o.Keys = keys
	opening(t, o, func(*Store) {})
	if found := hasSecrets(t, o); len(found) > 0 {
		t.Errorf("the secrets are in %v", found)
	}
}

func TestAPendingLoginIsEncrypted(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.keys.Store(keysOf(t, seal.NewKey()))
		if err := s.PutLogin(t.Context(), "state", "usr_a", json.RawMessage(`{"verifier":"canary"}`), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		var stored string
		if err := s.db.Get(t.Context(), "reading a login", `SELECT record FROM logins`, nil, &stored); err != nil || strings.Contains(stored, "canary") {
			t.Errorf("%s, %v", stored, err)
		}
		if login, err := s.TakeLogin(t.Context(), "state"); err != nil || string(login) != `{"verifier":"canary"}` {
			t.Errorf("%s, %v", login, err)
		}
	})
}

func TestServersThatShareADatabaseEncryptItAtTheSameTime(t *testing.T) {
	o := homes()[1].make(t)
	opening(t, o, func(s *Store) { furnishSecrets(t, s) })
	o.Keys = keysOf(t, seal.NewKey())
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			s, err := Open(context.WithoutCancel(t.Context()), o)
			if err == nil {
				_, err = s.Installations(context.WithoutCancel(t.Context()))
				err = errors.Join(err, s.Close())
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if found := hasSecrets(t, o); len(found) > 0 {
		t.Errorf("the secrets are in %v", found)
	}
}
