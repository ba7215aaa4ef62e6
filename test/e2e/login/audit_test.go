package login

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// auditRecord is the part of a line in the audit file that the tests read.
type auditRecord struct{ Actor, Address, Action, Target, Outcome, Reason string }

// audited returns the records of an action. It skips the records that only announce a change.
func audited(t *testing.T, file, action string) (found []auditRecord) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line struct {
			auditRecord
			Record *auditRecord `json:"record"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		r := line.auditRecord
		if line.Record != nil {
			r = *line.Record
		}
		if r.Action == action && r.Outcome != "begun" {
			found = append(found, r)
		}
	}
	return found
}

func TestAuditRecordsOfLoginsNameTheUserAndTheProviderOrTheReason(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	file := filepath.Join(t.TempDir(), "audit.log")
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey),
		harness.Config(harness.OIDCAuth(p.Issuer, "name: staff", "clientId: app")+"audit: {file: "+file+"}\n"))
	session := p.LogIn(t, s)
	id := s.Do(t, "GET", "/v1/auth/session", nil, session).Object(t)["user"].(map[string]any)["id"].(string)
	b := harness.NewBrowser(t)
	b.Stop = s.URL + "/?"
	b.Visit(t, s.URL+"/v1/auth/callback?state=never&code=none")
	b.Visit(t, s.URL+"/v1/auth/callback?state=never&error=access_denied&error_description=not+you")
	p.State(map[string]any{"aud": "somebody else"}, nil, nil)
	b.Visit(t, s.URL+"/v1/auth/authorize")
	s.Do(t, "POST", "/v1/auth/login", `{"key":"`+harness.APIKey+`"}`)
	s.Do(t, "POST", "/v1/auth/login", `{"key":"a-wrong-key-0123"}`)

	for action, want := range map[string][]auditRecord{
		"GET /v1/auth/callback": {
			{Actor: id, Target: "staff", Outcome: "ok"},
			{Outcome: "unauthenticated", Reason: "the state is unknown, used or expired"},
			{Outcome: "unauthenticated", Reason: "access_denied not you"},
			{Target: "staff", Outcome: "unauthenticated", Reason: "another audience"},
		},
		"POST /v1/auth/login": {
			{Actor: "usr_owner", Target: "SERVICE_API_KEY", Outcome: "ok"},
			{Target: "SERVICE_API_KEY", Outcome: "unauthenticated", Reason: "authorization required"},
		},
	} {
		got := audited(t, file, action)
		if len(got) != len(want) {
			t.Fatalf("%s: %d records, want %d: %+v", action, len(got), len(want), got)
		}
		for i, w := range want {
			g := got[i]
			if g.Actor != w.Actor || g.Target != w.Target || g.Outcome != w.Outcome || !strings.Contains(g.Reason, w.Reason) || (g.Reason == "") != (w.Reason == "") {
				t.Errorf("%s, record %d: %+v, want %+v", action, i, g, w)
			}
		}
	}
}

func TestReadsRefusedWith403AreRecorded(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	file := filepath.Join(t.TempDir(), "audit.log")
	s := harness.Serve(t, harness.Config(harness.OIDCAuth(p.Issuer, "admins: [subject:root]")+"audit: {file: "+file+"}\n"))
	token := "Authorization: Bearer " + p.Token(nil)
	for path, headers := range map[string][]string{
		"/v1/apps": {"X-Workspace-Id: ws_other"}, "/v1/config": nil, "/v1/plugins": nil, "/v1/metrics": nil, "/v1/users": nil, "/mcp": {"X-Workspace-Id: ws_other"},
	} {
		a := s.Do(t, "GET", path, nil, append(headers, token, "X-Forwarded-For: 203.0.113.9, 198.51.100.7")...)
		if a.Status != 403 {
			t.Errorf("GET %s: %d %s", path, a.Status, a.Body)
			continue
		}
		got := audited(t, file, "GET "+path)
		if len(got) != 1 || got[0].Outcome == "ok" || got[0].Address != "198.51.100.7" {
			t.Errorf("the audit records of GET %s: %+v", path, got)
		}
	}
}

func TestAuditRecordsUseTheForwardedAddressOnlyFromATrustedProxy(t *testing.T) {
	t.Parallel()
	for trusted, want := range map[string]string{"127.0.0.1/32": "203.0.113.9", "192.0.2.1/32": "127.0.0.1"} {
		file := filepath.Join(t.TempDir(), "audit.log")
		s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey),
			harness.Config("audit: {file: "+file+"}\nhttp: {trustedProxies: ['"+trusted+"']}\n"))
		for _, credentials := range []string{"Authorization: Bearer " + harness.APIKey, "Authorization: Bearer wrong"} {
			s.Do(t, "POST", "/v1/auth/login", `{"key":"`+harness.APIKey+`"}`, "X-Forwarded-For: 203.0.113.9")
			s.Do(t, "POST", "/v1/workspaces", `{"name":"x"}`, "X-Forwarded-For: 203.0.113.9", credentials)
			s.Do(t, "GET", "/v1/apps", nil, "X-Forwarded-For: 203.0.113.9", credentials)
			s.Do(t, "POST", "/mcp", harness.Initialize, "X-Forwarded-For: 203.0.113.9", credentials)
		}
		for action, records := range map[string]int{"POST /v1/auth/login": 2, "POST /v1/workspaces": 2, "GET /v1/apps": 1, "POST /mcp": 2} {
			got := audited(t, file, action)
			if len(got) != records {
				t.Errorf("%s: %d records, want %d", action, len(got), records)
			}
			for _, r := range got {
				if r.Address != want {
					t.Errorf("%s with %s trusted has the address %s", action, trusted, r.Address)
				}
			}
		}
	}
}
