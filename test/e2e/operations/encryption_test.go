package operations

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const secretOfApp = "canary-5b1e-of-the-app"

// filesWithSecret returns the files in the directories that contain the app's secret.
func filesWithSecret(t *testing.T, dirs ...string) (found []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // a running server may have deleted the file
				return nil
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(secretOfApp)) {
				found = append(found, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// encrypted is a server whose key file is outside its home.
type encrypted struct {
	*harness.Server
	outside string // the directory with the key file and the backups
}

// command runs ropewalk with the server's home and database. It checks the exit status and the output.
func (e encrypted) command(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	environ := append(slices.Clone(e.Environ), "ROPEWALK_HOME="+e.Home)
	if e.Database != "" {
		environ = append(environ, "ROPEWALK_STORAGE_URL="+e.Database)
	}
	output, got := harness.Command(t, environ, args...)
	if got != status || !strings.Contains(output, want) {
		t.Fatalf("%v: status %d, want %d with %q:\n%s", args, got, status, want, output)
	}
}

// seesSecret checks that the app gets the secret.
func (e encrypted) seesSecret(t *testing.T) {
	t.Helper()
	e.WaitForStatus(t, "curious", "running")
	inside, _ := e.Call(t, "curious", "environment", nil).(map[string]any)
	if variables, _ := inside["variables"].([]any); !slices.Contains(variables, any("GIVEN="+secretOfApp)) {
		t.Errorf("the app sees %v", inside["variables"])
	}
}

func TestNoFileOrBackupContainsAnAppsSecret(t *testing.T) {
	t.Parallel()
	e := encrypted{harness.Serve(t), t.TempDir()}
	keys := filepath.Join(e.outside, "keys")
	e.Install(t, map[string]any{"path": harness.GoBundle(t, "curious", harness.Plain), "env": map[string]any{"GIVEN": secretOfApp}})
	e.command(t, 0, "Written", "backup", filepath.Join(e.outside, "plain.db"))
	if found := filesWithSecret(t, e.outside); len(found) != 1 {
		t.Fatalf("the unencrypted backup does not contain the secret, so the search cannot find it")
	}
	if err := os.Remove(filepath.Join(e.outside, "plain.db")); err != nil {
		t.Fatal(err)
	}
	e.Stop()

	harness.WriteFile(t, filepath.Join(e.Home, "ropewalk.yaml"), "storage: {keyFile: '"+keys+"'}\n")
	for i, args := range [][]string{{"encryption", "rotate"}, {"encryption", "rotate"}, {"encryption", "rotate", "--drop"}} {
		e.command(t, 0, "Encrypted with the key ", args...)
		e.Start()
		e.seesSecret(t)
		e.command(t, 1, "", "encryption", "rotate") // fails, because a server is running
		e.command(t, 0, "Written", "backup", filepath.Join(e.outside, string(rune('a'+i))))
		if found := filesWithSecret(t, e.Home, e.outside); len(found) > 0 {
			t.Errorf("%v: the secret is in %v", args, found)
		}
		e.Stop()
		if found := filesWithSecret(t, e.Home); len(found) > 0 {
			t.Errorf("%v: the secret is in %v", args, found)
		}
	}
	// The keys of the first backup have been dropped.
	e.command(t, 1, "it is encrypted with the key ", "restore", "--replace", filepath.Join(e.outside, "a"))
	e.command(t, 0, "Restored", "restore", "--replace", filepath.Join(e.outside, "c"))

	right := keys + ".right"
	if err := os.Rename(keys, right); err != nil {
		t.Fatal(err)
	}
	e.command(t, 1, "does not exist; `ropewalk encryption rotate` creates it", "serve", "--port", "0")
	e.command(t, 1, "it is encrypted with the key ", "encryption", "rotate")
	e.command(t, 1, "the server does not start without the key", "doctor")
	if err := os.Rename(right, keys); err != nil {
		t.Fatal(err)
	}
	e.Start()
	e.seesSecret(t)
}
