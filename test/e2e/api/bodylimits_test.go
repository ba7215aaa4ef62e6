package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestBodyLimitsAreConfigurableAndNamedInErrors(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("limits: {apiBodyBytes: 5000, mcpBodyBytes: 7000}\n"))
	for _, c := range []struct {
		path, limit string
		fits, over  int
	}{
		{"/v1/tools/call", "5000", 4_500, 5_500},
		{"/mcp", "7000", 6_500, 7_500},
	} {
		send := func(size int) harness.Response {
			return s.Do(t, "POST", c.path, `{"pad":"`+strings.Repeat("x", size-10)+`"}`, harness.WorkspaceHeader, harness.AcceptHeader)
		}
		if a := send(c.over); a.Status != http.StatusRequestEntityTooLarge || !strings.Contains(a.Body, c.limit) {
			t.Errorf("%s with %d bytes: %d %s", c.path, c.over, a.Status, a.Body)
		}
		if a := send(c.fits); a.Status == http.StatusRequestEntityTooLarge {
			t.Errorf("%s with %d bytes: %d %s", c.path, c.fits, a.Status, a.Body)
		}
	}
}
