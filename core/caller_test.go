package core

import (
	"strings"
	"testing"
)

func TestAWorkspaceIDIsLettersAndDigitsAfterItsPrefix(t *testing.T) {
	for id, want := range map[string]bool{
		"ws_a": true, DefaultWorkspaceID: true, "ws_" + strings.Repeat("Z9", 32): true,
		"": false, "ws_": false, "ws": false, "wsa": false, "WS_a": false, "ws_a_b": false, "ws_ä": false, "ws_a\n": false, " ws_a": false,
		"ws_" + strings.Repeat("a", 65): false, "ws_٣": false, "ws_a/../b": false,
	} {
		if ValidWorkspaceID(id) != want {
			t.Errorf("ValidWorkspaceID(%q) should be %v", id, want)
		}
	}
}
