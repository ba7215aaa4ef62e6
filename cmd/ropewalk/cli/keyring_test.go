package cli

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestALoginIsStoredInTheKeyring(t *testing.T) {
	testenv.StartSessionBus(t)
	testenv.StartKeyring(t)
	path := filepath.Join(t.TempDir(), "contexts.yaml")
	t.Setenv("ROPEWALK_CONTEXTS", path)
	work := Context{Server: "https://tools.example.com"}
	work.KeepLogin("first")
	entry := strings.TrimPrefix(work.Login, inKeyring)
	work.KeepLogin("secret-token")
	if _, err := keyring.Get(keyringService, entry); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("the first login is still in the keyring after a second one: %v", err)
	}
	if err := (Contexts{Contexts: map[string]Context{"work": work}}).Save(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "secret-token") {
		t.Errorf("the file has the token, or %v:\n%s", err, text)
	}
	all, err := LoadContexts()
	if err != nil {
		t.Fatal(err)
	}
	loaded := all.Contexts["work"]
	if token, err := loaded.Token(); token != "secret-token" || err != nil {
		t.Errorf("Token returns %q, %v", token, err)
	}
	loaded.ForgetLogin()
	if token, err := work.Token(); token != "" || err == nil || !strings.Contains(err.Error(), "ropewalk login") {
		t.Errorf("after a logout, Token returns %q, %v", token, err)
	}
}

func TestALoginIsStoredInTheFileIfNoKeyringResponds(t *testing.T) {
	kept := func(name string) {
		var c Context
		c.keepLogin("secret-token", 100*time.Millisecond)
		if token, err := c.Token(); c.Login != "secret-token" || token != "secret-token" || err != nil {
			t.Errorf("%s: the context has %q, and Token returns %q, %v", name, c.Login, token, err)
		}
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	kept("no session bus")

	socket := filepath.Join(t.TempDir(), "bus")
	silent, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+socket)
	kept("a bus that never answers")

	testenv.StartSessionBus(t)
	kept("a bus without a keyring")
}
