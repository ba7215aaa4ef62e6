package migrations

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// breaking returns the statements in a migration that would break servers of the previous version. These servers use
// the same database during an upgrade.
func breaking(migration string) []string {
	up, _, _ := strings.Cut(migration, "-- +goose Down")
	if strings.Contains(up, "-- contract:") {
		return nil
	}
	up = regexp.MustCompile(`(?m)^\s*--.*$`).ReplaceAllString(up, "")
	var found []string
	for statement := range strings.SplitSeq(up, ";") {
		text := strings.ToUpper(strings.Join(strings.Fields(statement), " "))
		added := strings.Contains(text, " ADD COLUMN ") && strings.Contains(text, "NOT NULL") && !strings.Contains(text, " DEFAULT ")
		if added || regexp.MustCompile(`\b(DROP (TABLE|COLUMN)|RENAME|ALTER COLUMN|ADD CONSTRAINT|DELETE FROM|TRUNCATE)\b`).MatchString(text) {
			found = append(found, text)
		}
	}
	return found
}

func TestNoMigrationBreaksThePreviousVersion(t *testing.T) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) < 10 {
		t.Fatalf("%v %v", names, err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range breaking(string(text)) {
			t.Errorf("%s: servers of the previous version fail after %q; see docs/upgrading.md", name, statement)
		}
	}
}

func TestBreakingStatementsAreFound(t *testing.T) {
	for _, statement := range []string{
		"DROP TABLE users", "ALTER TABLE users DROP COLUMN email", "ALTER TABLE users RENAME TO people", "ALTER TABLE users ADD COLUMN a\n TEXT NOT NULL",
		"ALTER TABLE users ALTER COLUMN email TYPE BIGINT", "DELETE FROM users",
	} {
		if len(breaking("-- +goose Up\n-- why\n"+statement+";\n")) != 1 {
			t.Errorf("not found: %s", statement)
		}
		if len(breaking("-- +goose Up\n-- contract: unused since version 2\n"+statement+";\n")) != 0 {
			t.Errorf("refused: %s", statement)
		}
	}
	if found := breaking("-- +goose Up\nALTER TABLE users ADD COLUMN a TEXT NOT NULL DEFAULT '';\n-- +goose Down\nDROP TABLE users;\n"); len(found) > 0 {
		t.Errorf("found %q", found)
	}
}
