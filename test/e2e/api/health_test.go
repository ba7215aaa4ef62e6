package api

import (
	"regexp"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestHealthNeedsNoCredentials(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Env("SERVICE_API_KEY="+harness.APIKey))
	key := "Authorization: Bearer " + harness.APIKey
	healthy := func() bool {
		return regexp.MustCompile(`"state":"running"`).MatchString(s.Do(t, "GET", "/v1/health", nil).Body)
	}
	if !testkit.Within(harness.Timeout, healthy) {
		t.Fatal("the sample app is not running")
	}
	const milliseconds = `\d+(\.\d{1,3})?`
	holdsTo := func(path, pattern string) {
		t.Helper()
		if a := s.Do(t, "GET", path, nil); a.Status != 200 || a.Header.Get("Content-Type") != "application/json" || !regexp.MustCompile("^"+pattern+"$").MatchString(a.Body) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	holdsTo("/v1/health", `\{"status":"ok","uptime":`+milliseconds+`,"bundles":\[\{"name":"sample","state":"running"\}\]\}`)
	running := `^\[\{"name":"sample","state":"running","uptime":[0-9.e-]*[1-9][0-9.e-]*,"restartCount":0\}\]$`
	if !testkit.Within(harness.Timeout, func() bool {
		return regexp.MustCompile(running).MatchString(s.Do(t, "GET", "/v1/bundles/health", nil).Body)
	}) { // the uptime is 0 at first, because the app may have been running for less than a millisecond
		t.Errorf("/v1/bundles/health: %s", s.Do(t, "GET", "/v1/bundles/health", nil).Body)
	}
	if a := s.Do(t, "POST", "/v1/apps/sample/stop", nil, key); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	holdsTo("/v1/health", `\{"status":"ok","uptime":`+milliseconds+`,"bundles":\[\{"name":"sample","state":"stopped"\}\]\}`)
	holdsTo("/v1/bundles/health", `\[\{"name":"sample","state":"stopped","uptime":0,"restartCount":0\}\]`)
}
