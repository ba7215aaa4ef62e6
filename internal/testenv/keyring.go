//go:build unix

package testenv

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// StartSessionBus starts a D-Bus without services, sets DBUS_SESSION_BUS_ADDRESS to it, and stops it when the test ends.
func StartSessionBus(t testing.TB) {
	t.Helper()
	program, dir := Program(t, "dbus-daemon"), t.TempDir()
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	text := `<busconfig><type>session</type><listen>unix:path=` + socket + `</listen>` +
		`<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ready := func(ctx context.Context) bool {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	bus := &Server{t: t, quit: syscall.SIGTERM, ready: ready, command: func() *exec.Cmd {
		return exec.CommandContext(context.WithoutCancel(t.Context()), program, "--config-file", config, "--nofork", "--nopidfile")
	}}
	t.Cleanup(bus.Stop)
	bus.Start()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+socket)
}

// StartKeyring starts an unlocked GNOME Keyring on the session bus, and stops it when the test ends.
func StartKeyring(t testing.TB) {
	t.Helper()
	program, dir := Program(t, "gnome-keyring-daemon"), t.TempDir()
	send := Program(t, "dbus-send")
	ready := func(ctx context.Context) bool {
		return exec.CommandContext(ctx, send, "--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets/collection/login",
			"org.freedesktop.DBus.Peer.Ping").Run() == nil
	}
	k := &Server{t: t, quit: syscall.SIGTERM, ready: ready, command: func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--unlock", "--components=secrets", "--foreground")
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
		cmd.Stdin = strings.NewReader("password")
		return cmd
	}}
	t.Cleanup(k.Stop)
	k.Start()
}
