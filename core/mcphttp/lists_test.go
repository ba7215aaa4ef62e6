package mcphttp

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

func TestLongListsOfEveryKindArePaged(t *testing.T) {
	r := start(t, nil)
	const many = 2005 // a page and a half
	words, offer := strings.Repeat("w", pageBytes/1500), &core.Offer{}
	raw := func(member, value string) json.RawMessage {
		return json.RawMessage(`{"` + member + `":"` + value + `","description":"` + words + `"}`)
	}
	r.fakeNamespace.mu.Lock()
	r.fakeNamespace.listed = nil
	for i := range many {
		name := fmt.Sprintf("t%04d", i)
		r.fakeNamespace.listed = append(r.fakeNamespace.listed, tools.Listed{Name: name, Tool: core.Tool{Server: "demo", Name: name}, Raw: raw("name", name)})
		offer.Prompts = append(offer.Prompts, core.Prompt{Server: "demo", Name: name, Raw: raw("name", name)})
		offer.Resources = append(offer.Resources, core.Resource{Server: "demo", URI: "x://" + name, Raw: raw("uri", "x://"+name)})
		offer.Templates = append(offer.Templates, core.ResourceTemplate{Server: "demo", Template: "x://{a}/" + name, Raw: raw("uriTemplate", "x://{a}/"+name)})
	}
	r.fakeNamespace.mu.Unlock()
	r.fakeNamespace.app.SetOffer("", offer)
	w := r.join(alice)
	for method, kind := range map[string]core.Kind{
		"tools/list": core.KindTools, "prompts/list": core.KindPrompts, "resources/list": core.KindResources, "resources/templates/list": core.KindTemplates,
	} {
		t.Run(method, func(t *testing.T) {
			pages, names := r.in(t).pages(w, method, kind)
			if pages != 2 || len(names) != many || !strings.HasSuffix(names[0], "t0000") || !strings.HasSuffix(names[many-1], "t2004") {
				t.Errorf("%d names on %d pages", len(names), pages)
			}
			for _, wrong := range []string{`"zzz"`, `""`, `7`} {
				if _, body := r.in(t).say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"cursor":`+wrong+`}}`); !strings.Contains(body, "-32602") {
					t.Errorf("cursor %s: %s", wrong, body[:min(len(body), 300)])
				}
			}
		})
	}
}

func TestAListOfToolsContainsTheAppsWhoseToolsAreMissing(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	r.fakeNamespace.app.SetMissing(core.MissingApp{Name: "calc", Status: core.StateDead}, core.MissingApp{Name: "mail", Status: core.StateStarting})
	const want = `"ropewalk/missing":[{"app":"calc","status":"dead"},{"app":"mail","status":"starting"}]`
	list := func(method string) string {
		_, body := r.say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		return body
	}
	if got := list("tools/list"); !strings.Contains(got, want) || !strings.Contains(got, `"demo__echo"`) {
		t.Errorf("a session's list: %s", got)
	}
	if got := list("prompts/list"); strings.Contains(got, "missing") {
		t.Errorf("a list of prompts: %s", got)
	}
	_, body := r.say("POST", alice, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+statelessMeta("")+`}}`, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
	if !strings.Contains(body, want) || !strings.Contains(body, "io.modelcontextprotocol/serverInfo") {
		t.Errorf("a list without a session: %s", body)
	}
	r.fakeNamespace.app.SetMissing()
	if got := list("tools/list"); strings.Contains(got, "_meta\":{\"ropewalk") {
		t.Errorf("with all apps: %s", got)
	}
}

// counted is an audience that counts its notifications.
type counted struct{ atomic.Int64 }

func (c *counted) ListChanged(core.Kind) { c.Add(1) }

func TestAStormOfChangesIsSlowedDownAndItsLastChangeIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &counted{}
		w := &watch{tools: newFakeNamespace(), audience: map[audience]*listReader{heard: {}}}
		for range 600 {
			w.changed(core.KindTools)
			<-time.After(100 * time.Millisecond)
		}
		if n := heard.Load(); n < 10 || n > 30 {
			t.Errorf("%d notifications for 600 changes in a minute", n)
		}
		<-time.After(maxPause)
		before := heard.Load()
		w.changed(core.KindTools)
		<-time.After(3 * maxPause)
		w.changed(core.KindTools)
		<-time.After(2 * debounce)
		if n := heard.Load() - before; n != 2 {
			t.Errorf("%d notifications for two changes after the storm", n)
		}
	})
}

// pages reads a list page by page and returns the number of pages and the names.
func (r *rig) pages(w who, method string, kind core.Kind) (pages int, names []string) {
	params := "{}"
	for {
		_, body := r.say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		var answer struct{ Result map[string]json.RawMessage }
		var items []struct{ Name, URI, URITemplate string }
		if streamed := events(body); len(streamed) > 0 { // on a slow machine
			body = streamed[len(streamed)-1]
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			r.Fatal(err)
		}
		if err := json.Unmarshal(answer.Result[string(kind)], &items); err != nil {
			r.Fatal(err)
		}
		for _, i := range items {
			names = append(names, i.Name+i.URI+i.URITemplate)
		}
		cursor := answer.Result["nextCursor"]
		if pages++; cursor == nil || pages > 3 {
			return pages, names
		}
		params = `{"cursor":` + string(cursor) + `}`
	}
}

func TestACursorIsFoundInAListThatChanged(t *testing.T) {
	list := func(names ...string) (items []tools.Item) {
		for _, name := range names {
			items = append(items, tools.Item{Name: name})
		}
		return items
	}
	for name, c := range map[string]struct {
		before, after []tools.Item
		end, want     int
	}{
		"the same list":                         {list("a", "b", "c"), list("a", "b", "c"), 2, 2},
		"a duplicate name":                      {list("a", "b", "a", "c"), list("a", "b", "a", "c"), 3, 3},
		"an item was added before the cursor":   {list("a", "b", "c"), list("0", "a", "b", "c"), 2, 3},
		"an item was removed before the cursor": {list("a", "b", "c"), list("b", "c"), 2, 1},
		"the cursor's item was removed":         {list("a", "b", "c"), list("a", "c"), 2, -1},
		"a name with spaces":                    {list("a b c", "d"), list("a b c", "d"), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pageStart(c.after, json.RawMessage(`"`+cursorAfter(c.before, c.end)+`"`)); got != c.want {
				t.Errorf("the page starts at %d, want %d", got, c.want)
			}
		})
	}
}
