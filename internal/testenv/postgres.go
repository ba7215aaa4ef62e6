//go:build unix

package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Postgres is a test's own PostgreSQL cluster. Its data outlives Stop, Kill and Start.
type Postgres struct {
	*Server
	Addr string // host:port
	URL  string // of its only database, for its only user, who may do everything
}

// StartPostgres creates a PostgreSQL cluster and starts it. It stops when the test ends.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	skipIfShort(t, "PostgreSQL")
	bin := postgresBin(t)
	as := unprivileged(t)
	// Not t.TempDir: PostgreSQL's user cannot read its parent.
	dir, err := os.MkdirTemp("", "ropewalk-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(bin, name), args...)
		cmd.Dir, cmd.Env = dir, []string{"LC_ALL=C.UTF-8"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "ropewalk", "-A", "trust", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	for range attempts {
		port := strconv.Itoa(freePort(t))
		p := &Postgres{Addr: "127.0.0.1:" + port, URL: fmt.Sprintf("postgres://ropewalk@127.0.0.1:%s/postgres?sslmode=disable", port)}
		p.Server = &Server{t: t, quit: syscall.SIGINT}
		p.ready = func(ctx context.Context) bool {
			return exec.CommandContext(ctx, filepath.Join(bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port).Run() == nil
		}
		p.command = func() *exec.Cmd {
			return run("postgres", "-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=400")
		}
		t.Cleanup(p.Stop)
		if p.start() {
			return p
		}
		t.Logf("postgres did not start on port %s, trying another:\n%s", port, p.output)
	}
	t.Fatal("postgres did not start")
	return nil
}

// postgresBin finds the newest PostgreSQL. Debian does not put the server's executables on PATH.
func postgresBin(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil && len(found) == 0 {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = []string{path}
		}
	}
	if len(found) == 0 {
		t.Fatal("this test needs a PostgreSQL server; install the Debian package postgresql (apt-get install postgresql)")
	}
	return filepath.Dir(found[len(found)-1])
}

// unprivileged returns the user that PostgreSQL runs as. PostgreSQL refuses to run as root, so if the test does, the user
// is postgres or nobody. Otherwise the result is nil, which means the same user.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Fatal("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
	return nil
}
