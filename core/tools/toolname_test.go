package tools_test

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

func TestAToolNameOver64CharactersIsListedShortenedAndCalledByEitherName(t *testing.T) {
	long := strings.Repeat("long-", 14) // 70 characters
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {
		tool("files", long, `{"name":"`+long+`","_meta":{"a":1}}`), tool("files", long+"2", `{"name":"`+long+`2"}`),
	}}}
	n := newNamespace(y, &events{}, nil)
	listed := n.List(caller("ws_a", core.RoleMember))
	if len(listed) != 2 || len(listed[0].Name) != 64 || listed[0].Name == listed[1].Name || !strings.HasPrefix(listed[0].Name, "files__long-") {
		t.Fatalf("listed %q", names(listed))
	}
	if want := `"_meta":{"a":1,"ropewalk/originalName":"` + long + `"}`; !strings.Contains(string(listed[0].Raw), want) {
		t.Errorf("%s, want %s", listed[0].Raw, want)
	}
	for _, name := range []string{listed[0].Name, "files__" + long} {
		if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, call := range y.Calls() {
		if !strings.Contains(call.String(), `"name":"`+long+`"`) {
			t.Errorf("the app received %s", call)
		}
	}
}

func TestABareToolNameIsAcceptedIfOnlyOneAppHasIt(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {
		tool("clock", "now", `{"name":"now"}`), tool("clock", "only", `{"name":"only"}`), tool("timer", "now", `{"name":"now"}`),
	}}}
	n := newNamespace(y, &events{}, nil)
	me := caller("ws_a", core.RoleMember)
	if _, _, err := n.Call(t.Context(), me, tools.Call{Name: "only"}); err != nil {
		t.Errorf("if only one app has it: %v", err)
	}
	if _, _, err := n.Call(t.Context(), me, tools.Call{Name: "now"}); core.CodeOf(err) != core.CodeToolNotFound {
		t.Errorf("if two apps have it: %v", err)
	}
}
