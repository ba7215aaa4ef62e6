package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

const (
	keyringService = "ropewalk"

	// inKeyring begins the login of a context whose token is in the keyring. The rest is the name of the entry.
	inKeyring = "keyring:"
)

// keyringTimeout leaves time to unlock a keyring that asks for its password.
const keyringTimeout = 30 * time.Second

// KeepLogin stores the token of a login in the keyring of the operating system, or else in the context itself, which
// is stored in the contexts file.
func (c *Context) KeepLogin(token string) {
	c.keepLogin(token, keyringTimeout)
}

func (c *Context) keepLogin(token string, timeout time.Duration) {
	c.ForgetLogin()
	c.Login = token
	if token == "" || !hasKeyring() {
		return
	}
	entry := rand.Text()
	if await(timeout, func() error { return keyring.Set(keyringService, entry, token) }) == nil {
		c.Login = inKeyring + entry
	}
}

// Token returns the token of the login; "" if there is none.
func (c Context) Token() (token string, err error) {
	entry, kept := strings.CutPrefix(c.Login, inKeyring)
	if !kept {
		return c.Login, nil
	}
	found := make(chan string, 1)
	err = await(keyringTimeout, func() error {
		if !hasKeyring() {
			return errors.New("there is no session bus (DBUS_SESSION_BUS_ADDRESS)")
		}
		text, err := keyring.Get(keyringService, entry)
		found <- text
		return err
	})
	if err != nil {
		return "", fmt.Errorf("the login is in the keyring, which could not be read; unlock it, or run `ropewalk login` again: %w", err)
	}
	return <-found, nil
}

// ForgetLogin removes the login, including from the keyring.
func (c *Context) ForgetLogin() {
	if entry, kept := strings.CutPrefix(c.Login, inKeyring); kept {
		_ = await(keyringTimeout, func() error { return keyring.Delete(keyringService, entry) }) // it may be gone, and is worthless after the logout
	}
	c.Login = ""
}

// hasKeyring reports whether there may be a keyring. If there is no session bus, using a keyring would try to start one.
func hasKeyring() bool {
	return runtime.GOOS == "darwin" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != ""
}

// await runs f, which cannot be canceled, for at most the timeout.
func await(timeout time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(timeout):
		return errors.New("it did not respond")
	}
}
