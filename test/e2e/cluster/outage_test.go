package cluster

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestOpenSessionsContinueWhilePostgreSQLIsUnavailable(t *testing.T) {
	t.Parallel()
	callDuringOutage(t, 15*time.Second) // a membership is cached for less time
}

// callDuringOutage makes calls in open sessions while PostgreSQL refuses connections. At least 99.9% of the calls must
// succeed.
func callDuringOutage(t *testing.T, outage time.Duration) {
	database := testenv.StartPostgres(t)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n  - {token: the-token-of-alice-1, subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n")
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\n"),
		func(s *harness.Server) { s.Database = database.URL })
	bearer := "Bearer the-token-of-alice-1"
	client := s.OpenSession(t, "Authorization", bearer)
	if !testkit.Within(harness.Timeout, func() bool { _, err := client.Echo(t.Context(), "up"); return err == nil }) {
		t.Fatal("the sample is not running")
	}
	load := harness.StartLoad(t, 50, client, s.OpenSession(t, "Authorization", bearer))
	load.WaitForCalls(t, 50)
	database.Kill()
	<-time.After(outage)
	database.Start()
	load.WaitForCalls(t, 50)
	load.Stop()
	t.Logf("of %d calls, %d failed; statuses %v", load.Calls, len(load.Failures), load.Statuses)
	if len(load.Failures)*1000 > load.Calls {
		t.Errorf("more than 0.1%% of the calls failed, the first with: %v", load.Failures[0].Err)
	}
}
