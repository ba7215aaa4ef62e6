//go:build unix

package testenv

import (
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Store is the environment variable that determines where tests keep a server's state: "postgres" for a new
// PostgreSQL database each time, anything else for a file. make test runs them with both.
const Store = "ROPEWALK_TEST_STORE"

// Databases is the single PostgreSQL server for a package's tests, with as many databases as they need. The
// first test that needs one starts it. The server stops after the last test, if TestMain runs the tests through Around.
// The zero value is ready to use.
type Databases struct {
	once     sync.Once
	postgres *Postgres
	ends     []func()
	around   bool // Around runs the tests
}

// Required reports whether the tests must keep their state in PostgreSQL. That is never the case in packages
// without Around.
func (d *Databases) Required() bool { return d.around && os.Getenv(Store) == "postgres" }

// StateURL returns the URL of a new database, or "" if the tests keep their state in a file.
func (d *Databases) StateURL(t testing.TB) string {
	t.Helper()
	if !d.Required() {
		return ""
	}
	return d.New(t)
}

// New creates an empty database and returns its URL.
func (d *Databases) New(t testing.TB) string {
	t.Helper()
	skipIfShort(t, "PostgreSQL")
	d.once.Do(func() { d.postgres = StartPostgres(&packageTest{t, &d.ends}) })
	if d.postgres == nil {
		t.Fatal("PostgreSQL did not start for an earlier test")
	}
	at, err := url.Parse(d.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "test_" + strings.ToLower(rand.Text())
	create := exec.CommandContext(t.Context(), filepath.Join(postgresBin(t), "createdb"),
		"--host", at.Hostname(), "--port", at.Port(), "--username", at.User.Username(), "--maintenance-db", "postgres", at.Path)
	create.Env = []string{"LC_ALL=C.UTF-8"}
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("createdb: %v\n%s", err, out)
	}
	return at.String()
}

// Around wraps a package's tests: the server stops when they have run, before leaks are checked.
func (d *Databases) Around(m interface{ Run() int }) interface{ Run() int } {
	d.around = true
	return &around{m, &d.ends}
}
