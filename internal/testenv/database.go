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

// Store is the environment variable that says where the tests keep what a server keeps: "postgres"
// for a new PostgreSQL database each time, anything else for a file. make test runs them on both.
const Store = "ROPEWALK_TEST_STORE"

// Databases is the one PostgreSQL server of a package's tests, with as many databases as they want.
// The first test that wants one starts it; it ends after the last, when TestMain runs the tests by
// Around. The zero value is ready.
type Databases struct {
	once     sync.Once
	postgres *Postgres
	ends     []func()
	around   bool // Around runs the tests
}

// Wanted tells whether the tests are to keep things in PostgreSQL. They are not in packages without Around.
func (d *Databases) Wanted() bool { return d.around && os.Getenv(Store) == "postgres" }

// Chosen is the address of a new database, "" when the tests are to keep things in a file.
func (d *Databases) Chosen(t testing.TB) string {
	t.Helper()
	if !d.Wanted() {
		return ""
	}
	return d.New(t)
}

// New makes an empty database and returns its address.
func (d *Databases) New(t testing.TB) string {
	t.Helper()
	d.once.Do(func() { d.postgres = StartPostgres(&outliving{t, &d.ends}) })
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

// Around is the tests of a package with their server: it ends when they have run, before leaks are
// looked for.
func (d *Databases) Around(m interface{ Run() int }) interface{ Run() int } {
	d.around = true
	return &around{m, &d.ends}
}
