package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
)

// The bounds of one listing.
const (
	maxPages = 200
	maxItems = 10000
	maxBytes = 16 << 20 // of all items and cursors of one list
)

// listing is how one list is requested.
type listing struct {
	capability string // that the app declares when it has the list
	method     string
}

func listingOf(kind core.Kind) listing {
	switch kind {
	case core.KindPrompts:
		return listing{"prompts", "prompts/list"}
	case core.KindResources:
		return listing{"resources", "resources/list"}
	case core.KindTemplates:
		return listing{"resources", "resources/templates/list"}
	case core.KindTools:
	}
	return listing{"tools", "tools/list"}
}

// List returns all pages of a list of the app, each item exactly as it was sent. It is empty when the app
// does not have the list.
func (l *Link) List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error) {
	what := listingOf(kind)
	if !l.info.Offers(what.capability) {
		return nil, nil
	}
	return l.list(ctx, what.method, string(kind))
}

// list follows the cursors of a list method (MCP 2025-11-25, server/utilities/pagination).
func (l *Link) list(ctx context.Context, method, member string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	var params json.RawMessage
	seen, size := map[string]bool{}, 0
	for range maxPages {
		raw, err := l.Call(ctx, Request{Method: method, Params: params})
		if err != nil {
			return nil, err
		}
		items, cursor, err := readPage(raw, member)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if all = append(all, items...); len(all) > maxItems {
			return nil, fmt.Errorf("%s: the app lists more than %d %s", method, maxItems, member)
		}
		for _, item := range items {
			size += len(item)
		}
		if size += len(cursor); size > maxBytes {
			return nil, fmt.Errorf("%s: the app's list, with its cursors, has more than %d bytes", method, maxBytes)
		}
		if cursor == "" {
			return all, nil
		}
		if seen[cursor] {
			return nil, fmt.Errorf("%s: the app sent the same cursor twice", method)
		}
		seen[cursor] = true
		if params, err = json.Marshal(map[string]string{"cursor": cursor}); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: the app has more than %d pages", method, maxPages)
}

func readPage(raw json.RawMessage, member string) (items []json.RawMessage, cursor string, err error) {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", err
	}
	list, ok := page[member]
	if !ok {
		return nil, "", errors.New("the answer has no member " + member)
	}
	if err := json.Unmarshal(list, &items); err != nil {
		return nil, "", err
	}
	if next, ok := page["nextCursor"]; ok {
		if err := json.Unmarshal(next, &cursor); err != nil {
			return nil, "", fmt.Errorf("nextCursor: %w", err)
		}
	}
	return items, cursor, nil
}
