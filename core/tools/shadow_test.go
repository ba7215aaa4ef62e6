package tools_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/chaos"
)

// Apps choose their tools' names. Here they try to impersonate other apps' tools and the server's.
func TestEveryCallReachesTheAppThatListsTheTool(t *testing.T) {
	const rounds = 1000
	servers := []string{"a", "a-b", "b", "files", "system-x"}
	long := strings.Repeat("x", 70)
	tempting := []string{"x", "b__x", "a__x", "__x", "x__", "system__status", "files__a__x", long, long + "2", "a__" + long, "-", "b"}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	calls, wrong := 0, 0
	for range rounds {
		var all []core.Tool
		owners := map[string]string{} // the server and the tool's name, by description
		for _, server := range servers {
			random.Shuffle(len(tempting), func(i, j int) { tempting[i], tempting[j] = tempting[j], tempting[i] })
			for _, name := range tempting[:1+random.IntN(4)] {
				tag := fmt.Sprintf("tag-%d-", len(all))
				owners[tag] = server + " " + name
				all = append(all, tool(server, name, fmt.Sprintf(`{"name":%q,"description":%q}`, name, tag)))
			}
		}
		y := &fakeApps{tools: map[string][]core.Tool{"ws_a": all}}
		n := newNamespace(y, &events{}, nil)
		me := caller("ws_a", core.RoleMember)
		seen := map[string]bool{}
		for _, l := range n.List(me) {
			if seen[l.Name] {
				t.Fatalf("%s is listed twice", l.Name)
			}
			seen[l.Name] = true
			var raw struct{ Description string }
			if err := json.Unmarshal(l.Raw, &raw); err != nil {
				t.Fatal(err)
			}
			before := len(y.Calls())
			if _, _, err := n.Call(t.Context(), me, tools.Call{Name: l.Name}); err != nil {
				t.Fatalf("%s: %v", l.Name, err)
			}
			made := y.Calls()[before:]
			var params struct{ Name string }
			if len(made) != 1 || json.Unmarshal(made[0].Params, &params) != nil || made[0].Server+" "+params.Name != owners[raw.Description] {
				wrong++
				t.Errorf("%s from %s reached %v", l.Name, owners[raw.Description], made)
			}
			calls++
		}
	}
	chaos.Record(t, chaos.Row{
		Number: "35", Done: fmt.Sprintf("%d lists of 5 apps, %d calls", rounds, calls), Figure: fmt.Sprintf("%d misrouted", wrong), Required: "none", OK: wrong == 0 && calls > rounds,
	})
}
