package tools

import (
	"bytes"
	"encoding/json"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
)

// Limits on the resource links from results that are remembered: per session, for the stateless clients of each user,
// and on the number of users with stateless clients. The least recently used are forgotten first.
const (
	maxLinks     = 1000
	maxLinkUsers = 1000
)

// maxKeptURI is the maximum length in bytes of a URI that is remembered, as a link or for a subscription. Apps and
// clients can send URIs of any length.
const maxKeptURI = 8 << 10

// resourceLink is a part of a result that refers to a resource: a resource_link or an embedded resource.
type resourceLink struct {
	URI      string `json:"uri"`
	Resource struct {
		URI string `json:"uri"`
	} `json:"resource"`
}

func newLinks(size int) *lru.Cache[string, resourceRef] {
	links, _ := lru.New[string, resourceRef](size) // it only fails for sizes below 1
	return links
}

// given returns the cache of links that apps gave to a request's client, and the prefix of this client's keys. links is
// nil if the caller has no client.
func (n *Namespace) given(c core.Caller, from From) (links *lru.Cache[string, resourceRef], prefix string) {
	switch {
	case from.Stateless:
		own, ok := n.links.Get(c.User.ID)
		if !ok {
			own = newLinks(maxLinks)
			if first, added, _ := n.links.PeekOrAdd(c.User.ID, own); added {
				own = first
			}
		}
		return own, c.Workspace.ID + "\x00" + c.Principal() + "\x00"
	case from.Session != nil:
		return from.Session.links, ""
	}
	return nil, ""
}

// takeLinks remembers which app provided the unlisted resources that a result refers to. It reports whether the result
// contains a URI that has to be changed.
func (n *Namespace) takeLinks(c core.Caller, from From, uris *resourceURIs, server string, result json.RawMessage) (changes bool) {
	if !bytes.Contains(result, []byte(`"uri"`)) {
		return false
	}
	links, prefix := n.given(c, from)
	if links == nil {
		return false
	}
	for _, l := range linksOf(result) {
		for _, uri := range []string{l.URI, l.Resource.URI} {
			if uri == "" {
				continue
			}
			as := uris.link(server, uri)
			changes = changes || as != uri
			normal := core.NormalizeURI(as)
			if _, listed := uris.lookup(as, normal); !listed && len(uri) <= maxKeptURI {
				links.Add(prefix+normal, resourceRef{server, uri})
			}
		}
	}
	return changes
}

// linksOf returns the parts of a tools/call or prompts/get result that may refer to resources.
func linksOf(result json.RawMessage) (found []resourceLink) {
	var answer struct {
		Content  []json.RawMessage `json:"content"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(result, &answer) != nil {
		return nil
	}
	for _, m := range answer.Messages {
		answer.Content = append(answer.Content, m.Content)
	}
	for _, part := range answer.Content {
		var l resourceLink
		if json.Unmarshal(part, &l) == nil {
			found = append(found, l)
		}
	}
	return found
}

// find returns the app that has a resource, and the app's own URI for it, like resourceURIs.find. A resource that is
// not listed belongs to the app that provided a link to it.
func (n *Namespace) find(c core.Caller, from From, uri string) (at resourceRef, named bool, err error) {
	lists := n.lists(c, from)
	uris := lists.uris
	normal := core.NormalizeURI(uri)
	if skill, ok := n.skillRef(lists, c.Workspace.ID, uri); ok {
		if at, listed := uris.lookup(uri, normal); !listed || at.server != skill.server {
			return skill, true, nil
		}
	}
	if _, listed := uris.lookup(uri, normal); !listed {
		if links, prefix := n.given(c, from); links != nil {
			if at, ok := links.Get(prefix + normal); ok && lists.shown.ShowsApp(at.server) {
				return at, at.uri != uri, nil
			}
		}
	}
	return uris.find(uri)
}
