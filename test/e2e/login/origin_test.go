package login

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// sendRaw sends a request with exactly these header lines on a new connection.
func sendRaw(t *testing.T, s *harness.Server, body string, head ...string) harness.Response {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Timeout))
	fmt.Fprintf(conn, "%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", strings.Join(head, "\r\n"), len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Response{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
}

// endpoints has the body of a request that has an effect, by path.
var endpoints = map[string]string{"/mcp": harness.Initialize, "/v1/tools/call": `{"server":"system","tool":"status"}`}

func TestReboundDomainsAndOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	const token = "the-token-of-alice-1"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n- {token: "+token+", subject: alice, orgRole: owner, expires: 2099-01-01T00:00:00Z}\n")
	dev := harness.Serve(t)
	guarded := harness.Serve(t, harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\nhttp: {allowedOrigins: [\"https://app.example\"]}\n"))
	for _, c := range []struct {
		host, lines  string // HOST is replaced by the server's address
		dev, guarded bool
	}{
		{"HOST", "", true, true},
		{"localhost", "", true, true},
		{"a.localhost:1", "", true, true},
		{"[::1]:1", "", true, true},
		{"evil.example", "", false, false},
		{"evil.example", "X-Forwarded-Host: localhost", false, false},
		{"127.0.0.1.evil.example", "", false, false},
		{"localhost.evil.example", "", false, false},
		{"localhost@evil.example", "", false, false},
		{"evil.example#localhost", "", false, false},
		{"0.0.0.0", "", false, false},
		{"127.1", "", false, false},
		{"2130706433", "", false, false},
		{"169.254.169.254", "", false, false},
		{"localhost\r\nHost: evil.example", "", false, false},
		{"evil.example\r\nHost: localhost", "", false, false},
		{"evil.example", "Origin: http://evil.example", false, false},
		{"HOST", "Origin: http://HOST", true, true},
		{"HOST", "Origin: https://HOST", true, false}, // dev mode allows all pages from this machine
		{"HOST", "Origin: http://localhost:5173", true, false},
		{"HOST", "Origin: https://app.example", false, true},
		{"HOST", "Origin: https://app.example.evil.example", false, false},
		{"HOST", "Origin: https://app.example:444", false, false},
		{"HOST", "Origin: http://app.example", false, false},
		{"HOST", "Origin: https://evil.example", false, false},
		{"HOST", "Origin: http://localhost.evil.example", false, false},
		{"HOST", "Origin: http://localhost/", false, false},
		{"HOST", "Origin: http://evil.example@localhost", false, false},
		{"HOST", "Origin: file://localhost", false, false},
		{"HOST", "Origin: null", false, false},
		{"HOST", "Origin:", false, false},
		{"HOST", "Origin: http://localhost, http://evil.example", false, false},
		{"HOST", "Origin: http://HOST\r\nOrigin: https://evil.example", false, false},
		{"HOST", "Sec-Fetch-Site: cross-site", false, false},
		{"HOST", "Sec-Fetch-Site: same-origin", true, true},
	} {
		for path, body := range endpoints {
			for _, at := range []struct {
				*harness.Server
				lets bool
			}{{dev, c.dev}, {guarded, c.guarded}} {
				if at.Server == guarded && path != "/mcp" {
					continue // this path requires a bearer token, which browsers don't send automatically
				}
				here := strings.NewReplacer("HOST", strings.TrimPrefix(at.URL, "http://"))
				head := []string{"POST " + path + " HTTP/1.1", "Host: " + here.Replace(c.host), "Authorization: Bearer " + token, "X-Workspace-Id: " + harness.Workspace, "Accept: application/json, text/event-stream"}
				if c.lines != "" {
					head = append(head, here.Replace(c.lines))
				}
				a := sendRaw(t, at.Server, body, head...)
				if refused := a.Status == http.StatusForbidden || a.Status == http.StatusBadRequest; (a.Status == http.StatusOK) != at.lets || refused == at.lets {
					t.Errorf("dev %v, %s, Host %q, %q: %d %s", at.Server == dev, path, c.host, c.lines, a.Status, a.Body)
				}
			}
		}
	}
}

func TestARequestTargetMustNameTheHostInTheHostHeader(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	host := strings.TrimPrefix(s.URL, "http://")
	for path, body := range endpoints {
		for target, statuses := range map[string][2]int{ // with this server's Host header, and with another
			path:                           {http.StatusOK, http.StatusForbidden},
			"http://" + host + path:        {http.StatusOK, http.StatusBadRequest},
			"http://evil.example" + path:   {http.StatusBadRequest, http.StatusForbidden},
			"http://a@evil.example" + path: {http.StatusBadRequest, http.StatusForbidden},
		} {
			for i, name := range []string{host, "evil.example"} {
				a := sendRaw(t, s, body, "POST "+target+" HTTP/1.1", "Host: "+name, "X-Workspace-Id: "+harness.Workspace, "Accept: application/json, text/event-stream")
				if a.Status != statuses[i] {
					t.Errorf("%s under %s: %d %s, want %d", target, name, a.Status, a.Body, statuses[i])
				}
			}
		}
	}
}

func TestMCPPathsReturn404IfMCPIsOff(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Config("features: {mcpServer: false}\n"))
	for _, method := range []string{"POST", "GET", "DELETE", "PUT", "OPTIONS", "TRACE", "PROPFIND"} {
		a := s.Do(t, method, "/mcp", nil, "Origin: http://localhost:5173", "Access-Control-Request-Method: POST")
		if a.Status != http.StatusNotFound || a.Body != "Not found" {
			t.Errorf("%s: %d %s", method, a.Status, a.Body)
		}
	}
	if a := s.Do(t, "OPTIONS", "/v1/apps", nil, "Origin: http://localhost:5173", "Access-Control-Request-Method: POST"); a.Status != http.StatusNoContent {
		t.Errorf("a preflight elsewhere: %d %s", a.Status, a.Body)
	}
}
