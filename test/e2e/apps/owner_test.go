package apps

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// Everyone who can use the control socket is the owner. An app without a sandbox runs as the same user as the server,
// but it is not the owner.
func TestAnAppIsNotTheOwnerOfItsServer(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"none", "landlock", "namespaces"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s, dir := harness.Serve(t, harness.Config("sandbox: {level: "+level+"}\n")), demo(t)
			script, socket := filepath.Join(dir, "s.py"), filepath.Join(s.Home, "control.sock")
			s.Install(t, map[string]any{"command": "python3", "args": []string{script}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}}}})
			if got := act(t, s, "mine", map[string]any{"command": socket}); strings.Contains(got, "token") || strings.Contains(got, "HTTP") {
				t.Errorf("the server should not treat the app as the owner: %s", got)
			}
			if output, status := harness.Command(t, []string{"ROPEWALK_HOME=" + s.Home}, "whoami"); status != 0 || !strings.Contains(output, "owner of the organization") {
				t.Errorf("whoami as the owner: %d %s", status, output)
			}
		})
	}
}
