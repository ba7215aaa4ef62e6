package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

func TestOnlyOrganizationAdminsRootsReachApps(t *testing.T) {
	answers := `{"a":{"r\u006fots":[{"uri":"file:///etc"}]},"d":{"Roots":[1]},"b":{"action":"accept","content":{"roots":1}},"c":7}`
	for role, want := range map[core.Role]string{
		core.RoleMember: `{"a":{"roots":[]},"d":{"roots":[]},"b":{"action":"accept","content":{"roots":1}},"c":7}`,
		core.RoleAdmin:  answers,
		core.RoleOwner:  answers,
	} {
		y := twoApps()
		n := newNamespace(y, &events{}, nil)
		from := tools.From{Stateless: true}
		if _, _, err := n.Call(t.Context(), caller("ws_a", role), tools.Call{Name: "clock__get-time", InputResponses: json.RawMessage(answers), From: from}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.GetPrompt(t.Context(), caller("ws_a", role), tools.Request{Params: json.RawMessage(`{"name":"clock__ask","inputR\u0065sponses":` + answers + `}`), From: from}); err != nil {
			t.Fatal(err)
		}
		for _, sent := range y.asked() {
			if !strings.Contains(strings.ReplaceAll(sent, `\u0065`, "e"), `"inputResponses":`+want) {
				t.Errorf("role %s: the app was sent %s, want %s", role, sent, want)
			}
		}
	}
}

func TestAMembersSessionDeclaresNoRoots(t *testing.T) {
	n := everything(t)
	for role, want := range map[core.Role]bool{core.RoleMember: false, core.RoleOwner: true} {
		for _, name := range []string{"roots", "Roots", "ROOTS", `\u0072oots`, "root\u017f"} {
			c := caller("ws_a", role)
			s := n.Open(c, tools.SessionOptions{ID: string(role) + name, Capabilities: json.RawMessage(`{"sampling":{},"` + name + `":{}}`)})
			defer s.Close(t.Context())
			if asked := asksForRoots(t, n, s, c); asked != want {
				t.Errorf("a session with the role %s that declares %s was asked for roots: %v", role, name, asked)
			}
		}
	}
}

func TestAnAdminWhoLosesTheRoleCannotSendRoots(t *testing.T) {
	n := everything(t)
	s := n.Open(caller("ws_a", core.RoleOwner), tools.SessionOptions{ID: "s", Capabilities: json.RawMessage(canAll)})
	defer s.Close(t.Context())
	if asksForRoots(t, n, s, caller("ws_a", core.RoleMember)) {
		t.Error("the session should not be asked for roots")
	}
}

// asksForRoots reports whether a session's client is asked for roots when c calls a tool that needs them.
func asksForRoots(t *testing.T, n *tools.Namespace, s *tools.Session, c core.Caller) bool {
	t.Helper()
	h := accepting(`{}`)
	for range 2 { // first the shared instance asks, then the session's own
		if _, _, err := n.Call(t.Context(), c, tools.Call{Name: "all__test_input_required_result_list_roots", From: tools.From{Session: s, Asker: h}}); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Contains(strings.Join(h.asked, " "), "roots/list")
}
