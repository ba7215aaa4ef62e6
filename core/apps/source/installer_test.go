package source

import (
	"errors"
	"os/user"
	"testing"
)

func TestAPackageManagerHasAHomeEvenIfTheServersUserHasNone(t *testing.T) {
	for name, c := range map[string]struct {
		home string
		err  error
		want string
	}{
		"the user's":         {"/home/ada", nil, "/home/ada"},
		"no directory":       {"", nil, "/tmp/install"},
		"not in /etc/passwd": {"", errors.New("unknown userid 62369"), "/tmp/install"},
	} {
		got := homeOf(func() (*user.User, error) { return &user.User{HomeDir: c.home}, c.err }, "/tmp/install")
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
