package e2e

import (
	"regexp"
	"testing"
)

func TestHealthIsNotifiedToAnyone(t *testing.T) {
	t.Parallel()
	s := serve(t, flag("--sample"), env("SERVICE_API_KEY="+apiKey))
	key := "Authorization: Bearer " + apiKey
	healthy := func() bool {
		return regexp.MustCompile(`"state":"running"`).MatchString(s.do(t, "GET", "/v1/health", nil).body)
	}
	if !eventually(patience, healthy) {
		t.Fatal("the sample app does not run")
	}
	const milliseconds = `\d+(\.\d{1,3})?`
	holdsTo := func(path, pattern string) {
		t.Helper()
		if a := s.do(t, "GET", path, nil); a.status != 200 || a.header.Get("Content-Type") != "application/json" || !regexp.MustCompile("^"+pattern+"$").MatchString(a.body) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	holdsTo("/v1/health", `\{"status":"ok","uptime":`+milliseconds+`,"bundles":\[\{"name":"sample","state":"running"\}\]\}`)
	running := `^\[\{"name":"sample","state":"running","uptime":[0-9.e-]*[1-9][0-9.e-]*,"restartCount":0\}\]$`
	if !eventually(patience, func() bool {
		return regexp.MustCompile(running).MatchString(s.do(t, "GET", "/v1/bundles/health", nil).body)
	}) { // it may have run for no millisecond yet
		t.Errorf("/v1/bundles/health: %s", s.do(t, "GET", "/v1/bundles/health", nil).body)
	}
	if a := s.do(t, "POST", "/v1/apps/sample/stop", nil, key); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	holdsTo("/v1/health", `\{"status":"ok","uptime":`+milliseconds+`,"bundles":\[\{"name":"sample","state":"stopped"\}\]\}`)
	holdsTo("/v1/bundles/health", `\[\{"name":"sample","state":"stopped","uptime":0,"restartCount":0\}\]`)
}
