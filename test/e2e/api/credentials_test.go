package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// operations returns "METHOD /path" for every operation in the OpenAPI document whose request may have a body.
func operations(t *testing.T, s *harness.Server) (all []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	a := s.Do(t, "GET", "/v1/openapi.json", nil, "Authorization: Bearer "+harness.APIKey)
	if err := json.Unmarshal([]byte(a.Body), &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			switch method {
			case "post", "patch", "delete", "put":
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d operations in the document have a body", len(all))
	}
	return all
}

func TestA401ComesBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Config(harness.OIDCAuth(p.Issuer)))
	address := strings.TrimPrefix(s.URL, "http://")
	bodies := map[string]string{
		"that never comes":            "Content-Length: 100\r\n\r\n",
		"that stalls":                 "Content-Length: 100\r\n\r\n{\"a\":",
		"that stalls in a chunk":      "Transfer-Encoding: chunked\r\n\r\nff\r\n{\"a\":",
		"that waits for 100 Continue": "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
		"of 900 KB that stalls":       "Content-Length: 900000\r\n\r\n" + strings.Repeat(" ", 20000),
		"in chunks that never come":   "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
	}
	routes := append(operations(t, s), "POST /mcp", "DELETE /mcp", "POST /mcp/ws_default", "POST /mcp/me")
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		if slices.Contains([]string{"/v1/auth/login", "/v1/auth/device", "/v1/auth/device/answer", "/v1/auth/backchannel-logout"}, path) {
			continue // their bodies contain or request credentials
		}
		path = strings.NewReplacer("{", "", "}", "").Replace(path)
		for _, credentials := range []string{"", "Authorization: Bearer nonsense-1\r\n", "Cookie: service_session=nonsense\r\n"} {
			for name, body := range bodies {
				began := time.Now()
				first := firstResponse(t, address, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s%s", method, path, address, credentials, body))
				limited := strings.Contains(credentials, "Bearer") && first == http.StatusTooManyRequests             // the wrong token counts as a guess
				if took := time.Since(began); first != http.StatusUnauthorized && !limited || took > 30*time.Second { // the server waits 60 s for bodies
					t.Errorf("%s with %q and a body %s: %d after %v", route, credentials, name, first, took)
				}
			}
		}
	}

	// The server asks an authorized caller to continue with the body.
	body := `{"name":"later"}`
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Timeout))
	fmt.Fprintf(conn, "POST /v1/workspaces HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", address, harness.APIKey, len(body))
	r := bufio.NewReader(conn)
	if line, _ := r.ReadString('\n'); !strings.Contains(line, "100") {
		t.Fatalf("with the key, before the body: %q", line)
	}
	_, _ = r.ReadString('\n')
	fmt.Fprint(conn, body)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("with the key, after the body: %v %v", response, err)
	}
}

// firstResponse sends a request, which may be incomplete. It returns the status of the first response.
func firstResponse(t *testing.T, address, request string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(50 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	status := 0
	_, _ = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
	return status
}

func TestLargeRequestHeadersAreRefusedWithTheirOwnCode(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	if a := s.Do(t, "GET", "/v1/apps", nil, "X-Large: "+strings.Repeat("a", 15<<10)); a.Status != 200 {
		t.Errorf("15 KiB: %d %s", a.Status, a.Body)
	}
	a := s.Do(t, "GET", "/v1/apps", nil, "X-Large: "+strings.Repeat("a", 17<<10))
	if a.Status != 431 || a.Object(t)["error"] != "headers_too_large" || !strings.Contains(a.Body, "16384") {
		t.Errorf("17 KiB: %d %s", a.Status, a.Body)
	}
}
