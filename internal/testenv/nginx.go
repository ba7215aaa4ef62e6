//go:build unix

package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Nginx is a test's own nginx, in front of servers that the test started.
type Nginx struct {
	*Server
	URL string
	log string
}

// Forwarded is one request as nginx saw it.
type Forwarded struct {
	ID       string `json:"id"` // from the X-Request-Id header
	Method   string `json:"method"`
	Status   string `json:"status"`
	Upstream string `json:"upstream"` // where it was sent; several, separated by commas, if it was retried
}

// StartNginx starts an nginx, which stops when the test ends. site returns the contents of its http block, given the
// address to listen on.
func StartNginx(t testing.TB, site func(listen string) string) *Nginx {
	t.Helper()
	skipIfShort(t, "nginx")
	path, err := exec.LookPath("nginx")
	if _, there := os.Stat("/usr/sbin/nginx"); err != nil && there == nil { // where Debian installs it
		path, err = "/usr/sbin/nginx", nil
	}
	if err != nil {
		t.Fatal("this test needs nginx; install the Debian package nginx-light (apt-get install nginx-light)")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	for range attempts {
		listen := address(freePort(t))
		if err := os.WriteFile(conf, []byte(nginxConf(dir, site(listen))), 0o600); err != nil {
			t.Fatal(err)
		}
		n := &Nginx{URL: "http://" + listen, log: filepath.Join(dir, "access.log")}
		n.Server = &Server{t: t, quit: syscall.SIGTERM, ready: func(ctx context.Context) bool { return accepts(ctx, listen) }}
		n.command = func() *exec.Cmd {
			return exec.CommandContext(context.WithoutCancel(t.Context()), path, "-p", dir, "-c", conf, "-e", "stderr")
		}
		t.Cleanup(n.Stop)
		if n.start() {
			return n
		}
		t.Logf("nginx did not start on %s, trying another port:\n%s", listen, n.output)
	}
	t.Fatal("nginx did not start")
	return nil
}

// nginxConf puts a site into a configuration that writes only to dir.
func nginxConf(dir, site string) string {
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // other users cannot read a test's directory
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "  %s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	return fmt.Sprintf(`daemon off;
%s
pid %s;
error_log stderr warn;
worker_processes 2;
events { worker_connections 1024; }
http {
%s
  log_format tests escape=json '{"id":"$http_x_request_id","method":"$request_method","status":"$status","upstream":"$upstream_addr"}';
  access_log %s tests;
%s
}
`, user, filepath.Join(dir, "nginx.pid"), temporary.String(), filepath.Join(dir, "access.log"), site)
}

// Forwarded returns every request answered so far.
func (n *Nginx) Forwarded(t testing.TB) (all []Forwarded) {
	t.Helper()
	raw, err := os.ReadFile(n.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var one Forwarded
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("nginx logged %q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}
