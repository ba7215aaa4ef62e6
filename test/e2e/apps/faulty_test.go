package apps

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAnAppThatBreaksTheProtocolLosesOnlyTheBrokenParts(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "faulty", harness.Faulty)})
	logged := func(sentence string) {
		t.Helper()
		testkit.Eventually(t, "the app's log contains: "+sentence, func() bool {
			return strings.Contains(s.Do(t, "GET", "/v1/apps/faulty/logs", nil).Body, sentence)
		})
	}
	logged("the list of tools is cut off after 3 entries")

	call := func(tool string) string {
		t.Helper()
		return s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "faulty", "tool": tool, "arguments": map[string]any{}}).Body
	}
	if a := call("string-id"); !strings.Contains(a, "but the request's id is the number") {
		t.Errorf("an answer with its id as a string: %s", a)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/tools/call", strings.NewReader(`{"server":"faulty","tool":"other-id","arguments":{}}`))
	req.Header.Set("Content-Type", "application/json")
	go func() { _, _ = http.DefaultClient.Do(req) }() // this call waits until the time limit for calls
	logged("a response with the id 987654321, which matches no request")

	testkit.Eventually(t, "the server notices the flood of announcements", func() bool {
		return strings.Count(s.Log.String(), "keeps announcing list changes") == 1
	})
	read := func() float64 { return s.Call(t, "faulty", "lists", map[string]any{}).(float64) }
	testkit.Eventually(t, "an app that announces a change after each list is read at most six times in 5 s", func() bool {
		first := read()
		<-time.After(5 * time.Second)
		return read()-first <= 6
	})
}

func TestTheLogOfAnAppWithoutDeclaredToolsReportsThatItOffersNothing(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "undeclared", harness.Undeclared)})
	testkit.Eventually(t, "the app's log says that the app offers nothing", func() bool {
		return strings.Contains(s.Do(t, "GET", "/v1/apps/undeclared/logs", nil).Body, "the app offers nothing, because it declared no tools")
	})
}
