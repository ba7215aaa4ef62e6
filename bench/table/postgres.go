package table

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// errNoPostgres explains why rows are missing.
var errNoPostgres = errors.New("skipped: PostgreSQL is not installed (Debian package postgresql)")

// postgres creates a PostgreSQL cluster with the defaults of initdb, which write acknowledged data to disk. It
// starts the cluster and returns its URL. The cluster is stopped at the end of this part of the benchmark.
func (b *bench) postgres(ctx context.Context) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian does not put it on PATH
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", errNoPostgres
		}
		found = []string{path}
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp(b.o.Dir, "ropewalk-bench-postgres-") // the PostgreSQL user cannot access b.dir
	if err != nil {
		return "", err
	}
	b.leftovers = append(b.leftovers, dir)
	as, err := unprivileged()
	if err == nil && as != nil {
		err = os.Chown(dir, int(as.Uid), int(as.Gid))
	}
	if err != nil {
		return "", err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8") //nolint:gosec // the machine's own
	initdb.Dir, initdb.Env, initdb.SysProcAttr = dir, []string{"LC_ALL=C.UTF-8"}, &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	ready := func(line string) string {
		if strings.Contains(line, "ready to accept connections") {
			return "postgres://bench@127.0.0.1:" + port + "/postgres?sslmode=disable"
		}
		return ""
	}
	p, err := startWith(ctx, runEnv{as: as, dir: dir}, ready, filepath.Join(bin, "postgres"), "-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1")
	if err != nil {
		return "", err
	}
	b.started = append(b.started, p)
	return p.url, nil
}

// unprivileged returns the user that PostgreSQL runs as. PostgreSQL refuses to run as root, so if this program does, the
// user is postgres or nobody. Otherwise the result is nil, which means the same user.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
		}
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

func freePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	free, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(free.Addr().(*net.TCPAddr).Port), free.Close()
}
