package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestOneUsersLinksDoNotEvictAnotherUsersLinks(t *testing.T) {
	n := New(Options{})
	of := func(user string) (core.Caller, From) {
		return core.Caller{Identity: core.Identity{User: core.User{ID: user}}, Workspace: core.Workspace{ID: "ws_a"}}, From{Stateless: true}
	}
	links, prefix := n.given(of("alice"))
	links.Add(prefix+"a://one", resourceRef{"files", "a://one"})
	for i := range 20_000 {
		links, prefix := n.given(of("mallory"))
		links.Add(fmt.Sprint(prefix, "a://", i), resourceRef{"files", "a://x"})
	}
	links, prefix = n.given(of("alice"))
	if _, ok := links.Get(prefix + "a://one"); !ok {
		t.Error("the other user's link was evicted")
	}
	if links, _ := n.given(of("mallory")); links.Len() != maxLinks {
		t.Errorf("one user has %d links", links.Len())
	}
}

func TestALinkIsRememberedOnlyIfItsURIIsShort(t *testing.T) {
	n := New(Options{})
	c, from := core.Caller{Identity: core.Identity{User: core.User{ID: "alice"}}, Workspace: core.Workspace{ID: "ws_a"}}, From{Stateless: true}
	for _, uri := range []string{"a://one", "a://" + strings.Repeat("a", maxKeptURI)} {
		n.takeLinks(c, from, newResourceURIs(&core.Offer{}), "files", json.RawMessage(`{"content":[{"type":"resource_link","name":"x","uri":"`+uri+`"}]}`))
	}
	if links, _ := n.given(c, from); links.Len() != 1 {
		t.Errorf("%d links are remembered", links.Len())
	}
}
