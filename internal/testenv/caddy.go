//go:build unix

package testenv

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// StartCaddy starts a Caddy, which stops when the test ends, and returns its address, "127.0.0.1:port". site returns
// its site configuration, given the address to listen on.
func StartCaddy(t testing.TB, site func(listen string) string) (listen string) {
	t.Helper()
	path := Program(t, "caddy")
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	for range attempts {
		listen = address(freePort(t))
		global := "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"
		if err := os.WriteFile(file, []byte(global+site(listen)), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &Server{t: t, quit: syscall.SIGTERM, ready: func(ctx context.Context) bool { return accepts(ctx, listen) }}
		c.command = func() *exec.Cmd {
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, "run", "--config", file, "--adapter", "caddyfile")
			cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
			return cmd
		}
		t.Cleanup(c.Stop)
		if c.start() {
			return listen
		}
		t.Logf("Caddy did not start on %s, trying another port:\n%s", listen, c.output)
	}
	t.Fatal("Caddy did not start")
	return ""
}

// accepts reports whether something listens at an address.
func accepts(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}
