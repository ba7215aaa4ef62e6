package chaos

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// ReportVariable is the environment variable with the file that Record appends to. Without it, Record only
// logs.
const ReportVariable = "ROPEWALK_CHAOS_REPORT"

// Row is the result of one test for one row of docs/security.md.
type Row struct {
	Number   string `json:"number"`   // of the row; for tables without numbers, the threat
	Done     string `json:"done"`     // what was done, with counts
	Figure   string `json:"figure"`   // what was measured
	Required string `json:"required"` // the requirement
	OK       bool   `json:"ok"`
}

// Record adds a row to the report of `make chaos`. In `make test` a row that misses its requirement is only logged: time
// measurements need a machine without other work.
func Record(t testing.TB, r Row) {
	t.Helper()
	t.Logf("row %s: %s: %s (required: %s)", r.Number, r.Done, r.Figure, r.Required)
	path := os.Getenv(ReportVariable) //nolint:forbidigo // read by tests only
	if path == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
