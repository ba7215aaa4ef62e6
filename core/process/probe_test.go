//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestTheProbeFindsTheLevelThatWorks(t *testing.T) {
	testenv.NeedsNamespaces(t)
	p := process.ProbeSandbox(t.Context())
	if p.Level != sandbox.LevelNamespaces || p.OwnUID != (os.Geteuid() == 0) || p.Reason != "" {
		t.Errorf("the probe found %+v", p)
	}
}

func TestAnAppOfARootServerHasItsOwnUserID(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	c := confined(t, sandbox.LevelNamespaces, "")
	data := c.Sandbox.Write[0]
	old := filepath.Join(data, "from-before")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	uid := process.AppUID("this app")
	if err := process.Own(data, uid); err != nil {
		t.Fatal(err)
	}
	c.Path, c.Args = "/bin/sh", []string{"-c", "id -u; id -g; cat from-before; echo new > new && rm from-before"}
	c.Sandbox.UID = uid
	p := start(t, c)
	if got, want := output(t, p), fmt.Sprintf("%d\n%d\nkept", uid, uid); got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
	if p.Err() != nil {
		t.Error(p.Err())
	}
	info, err := os.Stat(filepath.Join(data, "new"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != uid {
		t.Errorf("its file belongs to %d, want %d", owner, uid)
	}
	if err := process.Own(data, 0); err != nil { // a server without a sandbox takes it back
		t.Error(err)
	}
}

// The app replaces one of its directories with a link to a directory of the machine.
func TestAnAppCannotRedirectTheChangeOfItsFilesOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	const attempts = 2000
	data, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{outside, filepath.Join(data, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(data, "link")); err != nil {
		t.Fatal(err)
	}
	done, racing := make(chan struct{}), sync.WaitGroup{}
	racing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(data, "tmp"), unix.AT_FDCWD, filepath.Join(data, "link"), unix.RENAME_EXCHANGE)
			}
		}
	})
	for i := range attempts {
		_ = process.Own(data, process.AppUID("this app")*(i%2), "tmp") // fails if an entry changes at the same time
	}
	close(done)
	racing.Wait()
	for _, path := range []string{outside, filepath.Join(outside, "file")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 {
			t.Errorf("%s belongs to %d", path, owner)
		}
	}
}
