package operations

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAServerWithAFailingPartIsNotReadyAndDoctorNamesThePart(t *testing.T) {
	t.Parallel()
	database, redis := testenv.StartPostgres(t), testenv.StartRedis(t)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	const token = "tokens:\n  - {token: the-token-of-alice-1, subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n"
	harness.WriteFile(t, tokens, token)
	s := harness.Serve(t, func(s *harness.Server) { s.Database = database.URL }, harness.Config(
		"storage: {url: '"+database.URL+"'}\nsessionStore: {adapter: redis, url: 'redis://"+redis.Addr+"/0'}\n"+
			"auth: {adapter: static, audience: any, file: "+tokens+"}\n"))
	unlock := func() {}
	faults := []struct {
		check        string
		breaks, ends func()
		also         string // another check that may fail, too
		names        string // a part of doctor's output
	}{
		{"sessionStore", redis.Stop, redis.Start, "", "the sessionstore plugin \"redis\" does not respond"},
		{"store", func() { limitFiles(t, s, 0) }, func() { limitFiles(t, s, unix.RLIM_INFINITY) }, "", "file too large"},
		{"notices", func() { unlock = lockNotices(t, database.URL) }, func() { unlock() }, "", "cannot read notices from other servers"},
		{"auth", func() { removeAuth(t, s, tokens) }, func() { harness.WriteFile(t, tokens, token) }, "", "the auth plugin \"static\" does not respond"},
		{"database", database.Kill, database.Start, "notices", "storage.url"},
	}
	for _, f := range faults {
		waitForChecks(t, s, "", "")
		f.breaks()
		began := time.Now()
		waitForChecks(t, s, f.check, f.also)
		t.Logf("/readyz reported %s after %v", f.check, time.Since(began).Round(10*time.Millisecond))
		output, status := harness.Command(t, []string{"PATH=" + t.TempDir()}, "doctor", "--home", s.Home)
		if status != 1 || !strings.Contains(output, "the server is not ready: "+f.check+": ") || !strings.Contains(output, f.names) {
			t.Errorf("while %s fails, doctor exits with status %d and prints\n%s", f.check, status, output)
		}
		f.ends()
	}
	waitForChecks(t, s, "", "")
	if output, _ := harness.Command(t, nil, "doctor", "--home", s.Home); !strings.Contains(output, "the server is ready (store, database, sessionStore, notices, auth, identityProvider)") {
		t.Errorf("after recovery, doctor prints\n%s", output)
	}
}

// waitForChecks waits until the check named failing fails. Of the other checks, only also may fail. If failing is "",
// waitForChecks waits until the server is ready.
func waitForChecks(t *testing.T, s *harness.Server, failing, also string) {
	t.Helper()
	var last string
	if !testkit.Within(harness.Timeout, func() bool {
		a := s.Do(t, "GET", "/readyz", nil)
		last = a.Body
		var ready struct {
			Status string
			Checks []struct {
				Name         string
				OK, Advisory bool
			}
		}
		if err := json.Unmarshal([]byte(a.Body), &ready); err != nil {
			t.Fatalf("%v: %s", err, a.Body)
		}
		failed := map[string]bool{}
		for _, c := range ready.Checks {
			if !c.OK && !c.Advisory && c.Name != also {
				failed[c.Name] = true
			}
		}
		if failing == "" {
			return a.Status == http.StatusOK && ready.Status == "ready"
		}
		return a.Status == http.StatusServiceUnavailable && ready.Status == "not ready" && len(failed) == 1 && failed[failing]
	}) {
		t.Fatalf("the check %q did not fail; /readyz returns %s", failing, last)
	}
}

// limitFiles sets the maximum size in bytes of the files that the server writes.
func limitFiles(t *testing.T, s *harness.Server, limit uint64) {
	t.Helper()
	var now unix.Rlimit
	if err := unix.Prlimit(s.Cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &now); err != nil {
		t.Fatal(err)
	}
	now.Cur = min(limit, now.Max)
	if err := unix.Prlimit(s.Cmd.Process.Pid, unix.RLIMIT_FSIZE, &now, nil); err != nil {
		t.Fatal(err)
	}
}

// lockNotices writes a notice and locks the table, so no server can read it until the returned function is called.
func lockNotices(t *testing.T, database string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), "LOCK TABLE notices IN ACCESS EXCLUSIVE MODE")
	}
	if err == nil {
		_, err = db.ExecContext(t.Context(), "UPDATE counters SET n = n + 1 WHERE name = 'notices'")
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
}

// removeAuth removes the token file and kills the auth plugin. Without the file, the plugin cannot start again.
func removeAuth(t *testing.T, s *harness.Server, tokens string) {
	t.Helper()
	if err := os.Remove(tokens); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Processes() {
		if strings.Contains(p.Command, "plugin serve auth static") {
			harness.KillProcess(t, p.ID)
			return
		}
	}
	t.Fatal("the auth plugin is not running")
}

// Without the identity provider, nobody can log in. The server still serves people who are already logged in.
func TestAProviderThatIsUnavailableAtStartIsReportedUntilItRecovers(t *testing.T) {
	t.Parallel()
	const key = "the-key-of-this-server-0123456789"
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+key), harness.Config(harness.OIDCAuth("http://127.0.0.1:"+harness.FreePort(t), "clientId: app")))
	owner := "Authorization: Bearer " + key
	shows := func(ok string) func() bool {
		return func() bool {
			a := s.Do(t, "GET", "/readyz", nil)
			return a.Status == http.StatusOK && strings.Contains(a.Body, `{"name":"identityProvider","ok":`+ok+`,"advisory":true}`)
		}
	}
	testkit.Eventually(t, "the provider is shown as unavailable", shows("false"))
	if a := s.Do(t, "GET", "/v1/metrics", nil, owner); !strings.Contains(a.Body, `ropewalk_identity_provider_up{name="oidc"} 0`) {
		t.Errorf("the metrics do not show the provider as unavailable: %d", a.Status)
	}
	if log := s.Log.String(); strings.Count(log, "identity provider unavailable") != 1 {
		t.Errorf("the log must report the provider once: %s", log)
	}
	if output, _ := harness.Command(t, nil, "doctor", "--home", s.Home); !strings.Contains(output, "the identity provider oidc is unavailable") {
		t.Errorf("doctor prints %s", output)
	}
	p := harness.StartProvider(t)
	s.MustReload(t, harness.OIDCAuth(p.Issuer, "clientId: app"))
	testkit.Eventually(t, "the provider is shown as available", shows("true"))
}
