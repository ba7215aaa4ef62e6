package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

func TestAFailureIsReportedWithTheLastErrorThatThePluginLogged(t *testing.T) {
	t.Parallel()
	written := `{"@level": "error", "@message": "An older one."}
{"@level": "error", "@message": "A call failed.", "@timestamp": "now", "method": "/Put", "stack": "SQLException: no such table` + strings.Repeat("x", 400) + `\nOperationalError: database is locked"}
{"@level": "warn", "@message": "Slow."}
not JSON
`
	var b strings.Builder
	r := &report{w: &b}
	r.outcome(kit.Outcome{Property: "p", Verdict: kit.Fail, Err: errors.New("why")}, lastError(written))
	for _, text := range []string{"why\n", `last logged:  A call failed. method="/Put" stack="SQLException: no such tablexxx`, "xxx…xxx", `\nOperationalError: database is locked"` + "\n", "again: "} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("there is no %q in\n%s", text, b.String())
		}
	}
	b.Reset()
	r.outcome(kit.Outcome{Property: "p", Verdict: kit.Fail, Err: errors.New("why")}, lastError("nothing\n"))
	if strings.Contains(b.String(), "logged") {
		t.Errorf("the plugin logged no error, but one is in\n%s", b.String())
	}
}
