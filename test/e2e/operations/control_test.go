package operations

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// The path of a home may be too long for a socket. The socket is still in the home, and commands connect to no other
// socket. In particular, they do not use one in the directory for temporary files, because anyone could have created
// it.
func TestCommandsInAHomeWithALongPathUseOnlyItsServer(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	home := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	sum := sha256.Sum256([]byte(home))
	planted := filepath.Join(tmp, "ropewalk-"+hex.EncodeToString(sum[:8]), "control.sock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(planted), 0o700), os.MkdirAll(home, 0o700)); err != nil {
		t.Fatal(err)
	}
	impostor, err := net.Listen("unix", planted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = impostor.Close() })
	go func() {
		for {
			conn, err := impostor.Accept()
			if err != nil {
				return
			}
			t.Error("the command should not connect to another server")
			_ = conn.Close()
		}
	}()
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "ROPEWALK_HOME=" + home}
	if output, _ := harness.Command(t, environ, "plugin", "list"); !strings.Contains(output, "No server is using the home") {
		t.Errorf("without a server: %s", output)
	}
	harness.Serve(t, func(s *harness.Server) { s.Home, s.Environ = home, append(s.Environ, "TMPDIR="+tmp) })
	if output, status := harness.Command(t, environ, "plugin", "list"); status != 0 {
		t.Errorf("with a server: %d %s", status, output)
	}
	if info, err := os.Lstat(filepath.Join(home, "control.sock")); err != nil || info.Mode()&os.ModeSocket == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}
