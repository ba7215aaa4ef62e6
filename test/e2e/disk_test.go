package e2e

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the server's database, which a test makes fail
	_ "modernc.org/sqlite"             // and the other one
)

// fillDisk has the server's database refuse every change of the records of apps, as if its disk were
// full, until empty is called.
func (s *server) fillDisk(t *testing.T) (empty func()) {
	t.Helper()
	driver, at := "sqlite", "file:"+filepath.Join(s.home, "ropewalk.db")+"?_pragma=busy_timeout(5000)"
	var fill, undo []string
	for _, what := range []string{"INSERT", "UPDATE", "DELETE"} {
		fill = append(fill, "CREATE TRIGGER refuse_"+what+" BEFORE "+what+" ON installations BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
		undo = append(undo, "DROP TRIGGER refuse_"+what)
	}
	if s.database != "" {
		driver, at = "pgx", s.database
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
