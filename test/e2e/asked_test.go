package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestEachOfficialClientIsAskedForItself(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("everything", everything, "stdio"))})
	const sessions = 4
	seen := runScript[struct {
		Asked []struct{ Elicited, Sampled string }
	}](t, "asked.mjs", s.url, workspace, fmt.Sprint(sessions))
	if len(seen.Asked) != sessions {
		t.Fatalf("%d sessions were asked", len(seen.Asked))
	}
	for n, said := range seen.Asked {
		if me := fmt.Sprintf("client %d", n); !strings.Contains(said.Elicited, me) || !strings.Contains(said.Sampled, me+" says") {
			t.Errorf("session %d: %+v", n, said)
		}
	}
}
