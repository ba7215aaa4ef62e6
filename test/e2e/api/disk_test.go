package api

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// Every write to the table of installed apps fails, as it would on a full disk.
func TestAChangeThatCannotBeStoredIsUndone(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "there", harness.Plain)})
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "asleep", harness.Plain)})
	if a := s.Do(t, "POST", "/v1/apps/asleep/stop", nil); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	empty := fillDisk(t, s)
	checkRefusals(t, s, nil, []refusal{
		{"an app is installed", "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "new", harness.Plain)}, 500, "install_failed", "", nil},
		{"an app is uninstalled", "DELETE", "/v1/apps/there", nil, 500, "uninstall_failed", "there", nil},
		{"an app is started", "POST", "/v1/apps/asleep/start", nil, 500, "start_failed", "asleep", nil},
		{"an app is stopped", "POST", "/v1/apps/there/stop", nil, 500, "stop_failed", "there", nil},
	})
	empty()
	s.WaitForStatus(t, "there", "running")
	if now := s.Apps(t); len(now) != 2 || now["there"].Status != "running" || now["asleep"].Status != "stopped" {
		t.Errorf("%+v", now)
	}
	if result := s.Call(t, "there", "echo", map[string]any{"text": "still here"}); result != "still here" {
		t.Errorf("the tool returned %v", result)
	}
}

// fillDisk makes the database reject every change to the table of installed apps until the returned function is
// called.
func fillDisk(t *testing.T, s *harness.Server) (empty func()) {
	t.Helper()
	driver, at := "sqlite", "file:"+filepath.Join(s.Home, "ropewalk.db")+"?_pragma=busy_timeout(60000)"
	var fill, undo []string
	for _, what := range []string{"INSERT", "UPDATE", "DELETE"} {
		fill = append(fill, "CREATE TRIGGER refuse_"+what+" BEFORE "+what+" ON installations BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
		undo = append(undo, "DROP TRIGGER refuse_"+what)
	}
	if s.Database != "" {
		driver, at = "pgx", s.Database
		fill = []string{
			`CREATE FUNCTION refuse() RETURNS trigger AS 'BEGIN RAISE EXCEPTION ''the disk is full''; END' LANGUAGE plpgsql`,
			`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON installations FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
		}
		undo = []string{`DROP TRIGGER refuse ON installations`}
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	execute := func(statements []string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	execute(fill)
	return func() { execute(undo) }
}
