package operations

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// The proxies in docs/proxies.md stream responses, pass on disconnects, and send the client's address to the server.
func TestTheDocumentedProxiesForwardStreamsDisconnectsAndAddresses(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, certFile, keyFile string, s *harness.Server) (listen string){
		"Caddy": func(t *testing.T, certFile, keyFile string, s *harness.Server) string {
			return testenv.StartCaddy(t, func(listen string) string {
				return strings.NewReplacer(
					"tools.example.com {", "https://"+strings.Replace(listen, "127.0.0.1", "localhost", 1)+" {\n\tbind 127.0.0.1\n\ttls "+certFile+" "+keyFile,
					"127.0.0.1:27247", strings.TrimPrefix(s.URL, "http://"),
				).Replace(testenv.Documented(t, "proxies.md", "caddyfile", 0))
			})
		},
		"nginx": func(t *testing.T, certFile, keyFile string, s *harness.Server) string {
			return strings.TrimPrefix(testenv.StartNginx(t, func(listen string) string {
				return strings.NewReplacer(
					"listen 443", "listen "+listen, "/etc/ssl/tools.example.com.pem", certFile, "/etc/ssl/tools.example.com.key", keyFile,
					"127.0.0.1:27247", strings.TrimPrefix(s.URL, "http://"),
				).Replace(testenv.Documented(t, "proxies.md", "nginx", 0))
			}).URL, "http://")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
			certificate := writeCertificate(t, certFile, keyFile)
			s := harness.Serve(t, harness.Config("log: {access: true}\n"))
			s.Install(t, map[string]any{"path": harness.GoBundle(t, "patient", harness.Plain)})
			behind := "https://" + strings.Replace(start(t, certFile, keyFile, s), "127.0.0.1", "localhost", 1)

			events := bufio.NewScanner(request(t, certificate, http.MethodGet, behind+"/v1/events", "").Body)
			if a := s.Do(t, "DELETE", "/v1/apps/patient", nil); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			seen := false
			for !seen && events.Scan() {
				seen = strings.Contains(events.Text(), "bundle.uninstalled")
			}
			if !seen {
				t.Errorf("the event did not arrive: %v", events.Err())
			}

			s.Install(t, map[string]any{"path": harness.GoBundle(t, "patient", harness.Plain)})
			file := s.SharedFile("patient", "file")
			ctx, leave := context.WithCancel(t.Context())
			body := `{"server":"patient","tool":"last","arguments":{"text":` + harness.Quote(file) + `}}`
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, behind+"/v1/tools/call", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			elsewhere := client(certificate)
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}
			elsewhere.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
				return from.DialContext(ctx, "tcp4", address)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if res, err := elsewhere.Do(req); err == nil {
					_ = res.Body.Close()
				}
			}()
			testkit.Eventually(t, "the call has begun", harness.Exists(file+".begun"))
			leave()
			<-ended
			testkit.Eventually(t, "the app's call is cancelled", harness.Exists(file+".cancelled"))
			testkit.Eventually(t, "the access log has the client's address", func() bool { return strings.Contains(s.Log.String(), "127.0.0.7") })
		})
	}
}
