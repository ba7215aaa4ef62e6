//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// One service is in a directory that the app may read, and another in a directory that it may write to. The app may
// connect to a third, which is granted by name.
func TestASocketInAReadableDirectoryIsClosedUnlessItIsGranted(t *testing.T) {
	for _, level := range confinedLevels() {
		for _, uid := range ownUsers() {
			t.Run(fmt.Sprintf("%v as %d", level, uid), func(t *testing.T) {
				dir, err := os.MkdirTemp("/tmp", "w")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				var paths []string
				for _, name := range []string{"read/closed", "read/named", "write/own"} {
					path := filepath.Join(dir, name)
					paths = append(paths, path)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					l, err := net.Listen("unix", path)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = l.Close() })
					if err := os.Chmod(path, 0o777); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(os.Chmod(dir, 0o755), os.Symlink(paths[0], filepath.Join(dir, "write/link"))); err != nil {
					t.Fatal(err)
				}
				c := confined(t, level, "connect", slices.Concat(paths, []string{filepath.Join(dir, "write/link"), filepath.Join(dir, "write/../read/closed")})...)
				c.Sandbox.Read = append(c.Sandbox.Read, filepath.Join(dir, "read"), paths[1])
				c.Sandbox.Write = append(c.Sandbox.Write, filepath.Join(dir, "write"))
				giveTo(t, &c, uid)
				if got, want := output(t, start(t, c)), "closed: refused\nnamed: connected\nown: connected\nlink: refused\nclosed: refused\n"; got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// The server's sockets are in its home, and the app may be allowed to write to the directory that contains the home.
// Landlock does not check connections to sockets, and a mask is lost when the server recreates a socket.
func TestAHiddenSocketStaysClosed(t *testing.T) {
	for _, level := range confinedLevels() {
		for _, uid := range ownUsers() {
			t.Run(fmt.Sprintf("%v as %d", level, uid), func(t *testing.T) {
				dir, err := os.MkdirTemp("/tmp", "w")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(filepath.Join(dir, "home/data"), 0o755)); err != nil {
					t.Fatal(err)
				}
				listen := func(name string) string {
					path := filepath.Join(dir, name)
					l, err := net.Listen("unix", path)
					if err == nil {
						t.Cleanup(func() { _ = l.Close() })
						err = os.Chmod(path, 0o777)
					}
					if err != nil {
						t.Fatal(err)
					}
					return path
				}
				paths := []string{listen("home/closed"), listen("home/data/own"), listen("alone"), filepath.Join(dir, "anew")}
				listen("anew")
				c := confined(t, level, "connect-later", paths...)
				c.Sandbox.Write = append(c.Sandbox.Write, dir, filepath.Join(dir, "home/data"))
				c.Sandbox.Hide = []string{filepath.Join(dir, "home"), paths[2], paths[3]}
				giveTo(t, &c, uid)
				p := start(t, c)
				if err := os.Remove(paths[3]); err != nil {
					t.Fatal(err)
				}
				listen("anew")
				if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
					t.Fatal(err)
				}
				if got, want := output(t, p), "closed: refused\nown: connected\nalone: refused\nanew: refused\n"; got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// At LevelNamespaces, the shim binds sockets for the app. The kernel removes the mask over a directory when the server
// recreates the directory.
func TestAHiddenDirectoryTakesNoSockets(t *testing.T) {
	for _, level := range confinedLevels() {
		for _, uid := range ownUsers() {
			t.Run(fmt.Sprintf("%v as %d", level, uid), func(t *testing.T) {
				dir, err := os.MkdirTemp("/tmp", "w")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				home := filepath.Join(dir, "home")
				if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o755)); err != nil {
					t.Fatal(err)
				}
				c := confined(t, level, "bind-later", filepath.Join(home, "hidden"), "own")
				c.Sandbox.Write, c.Sandbox.Hide = append(c.Sandbox.Write, dir), []string{home}
				giveTo(t, &c, uid)
				p := start(t, c)
				if err := errors.Join(os.Rename(home, home+"-old"), os.Mkdir(home, 0o755), os.Chmod(home, 0o777)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(p.Stdin(), "go\n"); err != nil {
					t.Fatal(err)
				}
				if got, want := output(t, p), "hidden: false\nown: true\n"; got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

func TestAHiddenDirectoryCannotBeFilled(t *testing.T) {
	open := t.TempDir()
	hidden := filepath.Join(open, "hidden")
	if err := os.Mkdir(hidden, 0o755); err != nil {
		t.Fatal(err)
	}
	c := confined(t, sandbox.LevelNamespaces, "")
	c.Path, c.Args = "/bin/sh", []string{"-c", "echo x > " + hidden + "/file; ls -A " + hidden + " | wc -l"}
	c.Sandbox.Read, c.Sandbox.Hide = append(c.Sandbox.Read, open), []string{hidden}
	if got := strings.TrimSpace(output(t, start(t, c))); got != "0" {
		t.Errorf("it holds %q files", got)
	}
}

// Editors, certificate renewals and log rotation replace files by renaming.
func TestAHiddenPathStaysClosedAfterItIsReplaced(t *testing.T) {
	const hidden = "conf/hidden"
	write := func(path string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("secret\n"), 0o644))
	}
	for name, c := range map[string]struct{ prepare, replace func(dir string) error }{
		"a file is renamed over it": {
			prepare: func(dir string) error { return write(filepath.Join(dir, hidden)) },
			replace: func(dir string) error {
				return errors.Join(write(filepath.Join(dir, "new")), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, hidden)))
			},
		},
		"it is removed and written again": {
			prepare: func(dir string) error { return write(filepath.Join(dir, hidden)) },
			replace: func(dir string) error {
				return errors.Join(os.Remove(filepath.Join(dir, hidden)), write(filepath.Join(dir, hidden)))
			},
		},
		"its directory is moved, and a new one takes its place": {
			prepare: func(dir string) error { return write(filepath.Join(dir, hidden)) },
			replace: func(dir string) error {
				return errors.Join(os.Rename(filepath.Join(dir, "conf"), filepath.Join(dir, "old")), write(filepath.Join(dir, hidden)))
			},
		},
		"it is a directory, and a new one takes its place": {
			prepare: func(dir string) error { return write(filepath.Join(dir, hidden, "file")) },
			replace: func(dir string) error {
				return errors.Join(os.Rename(filepath.Join(dir, hidden), filepath.Join(dir, "old")), write(filepath.Join(dir, hidden, "file")))
			},
		},
		"it is a link to a file elsewhere, and a file takes its place": {
			prepare: func(dir string) error {
				return errors.Join(os.Mkdir(filepath.Join(dir, "conf"), 0o755), write(dir+"-elsewhere"), os.Symlink(dir+"-elsewhere", filepath.Join(dir, hidden)))
			},
			replace: func(dir string) error {
				return errors.Join(os.Remove(filepath.Join(dir, hidden)), write(filepath.Join(dir, hidden)))
			},
		},
		"its directory is a link, and a directory takes its place": {
			prepare: func(dir string) error {
				return errors.Join(write(filepath.Join(dir+"-elsewhere", "hidden")), os.Symlink(dir+"-elsewhere", filepath.Join(dir, "conf")))
			},
			replace: func(dir string) error {
				return errors.Join(os.Remove(filepath.Join(dir, "conf")), write(filepath.Join(dir, hidden)))
			},
		},
	} {
		for _, level := range confinedLevels() {
			t.Run(fmt.Sprintf("%v: %s", level, name), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "open")
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "plain"), []byte("plain\n"), 0o644), c.prepare(dir)); err != nil {
					t.Fatal(err)
				}
				o := confined(t, level, "")
				o.Path, o.Args = "/bin/sh", []string{"-c", "echo ready; read line; cat " + dir + "/" + hidden + " " + dir + "/" + hidden + "/file; cat " + dir + "/plain"}
				o.Sandbox.Read, o.Sandbox.Hide = append(o.Sandbox.Read, dir), []string{filepath.Join(dir, hidden)}
				p := start(t, o)
				ready := make([]byte, len("ready\n"))
				_, err := io.ReadFull(p.Stdout(), ready)
				if err := errors.Join(err, c.replace(dir)); err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(p.Stdin(), "replaced\n")
				if got := output(t, p); got != "plain\n" {
					t.Errorf("it read %q, want only the plain file", got)
				}
			})
		}
	}
}

// The configuration may open a directory that contains the server's home. The home contains the app's data, which must
// stay accessible.
func TestAnAllowedPathInAHiddenDirectoryStaysOpen(t *testing.T) {
	for _, level := range confinedLevels() {
		open := t.TempDir()
		hidden := filepath.Join(open, "hidden")
		own := filepath.Join(hidden, "apps/own")
		if err := errors.Join(os.MkdirAll(own, 0o755), os.WriteFile(filepath.Join(hidden, "secret"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		c := confined(t, level, "")
		c.Path, c.Args = "/bin/sh", []string{"-c", "echo written > " + own + "/file; cat " + own + "/file; cat " + hidden + "/secret || echo closed; mkdir " + hidden + "/new || echo full"}
		c.Sandbox.Read, c.Sandbox.Hide, c.Sandbox.Write = append(c.Sandbox.Read, open), []string{hidden}, append(c.Sandbox.Write, own)
		if got := output(t, start(t, c)); got != "written\nclosed\nfull\n" {
			t.Errorf("%v: %q", level, got)
		}
	}
}
