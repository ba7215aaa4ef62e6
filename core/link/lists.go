package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Limits for one listing.
const (
	maxPages = 200
	maxItems = 10000
	maxBytes = 16 << 20 // for all items and cursors in one list
)

// listing describes how to request one list.
type listing struct {
	capability string // the capability that an app with this list declares
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

// List returns all pages of one of the app's lists, each item exactly as sent. It is empty if the app does not have the
// list. If a page after the first cannot be read, List returns the earlier pages and logs a warning.
func (l *Link) List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error) {
	what := listingOf(kind)
	switch {
	case l.info.Offers(what.capability):
	case kind == core.KindTools && len(l.info.offers) == 0: // some servers declare nothing at all
		items, err := l.list(ctx, what.method, string(kind))
		if len(items) == 0 && ctx.Err() == nil {
			l.warn("the app offers nothing, because it declared no tools")
			return nil, nil
		}
		return items, err
	default:
		return nil, nil
	}
	items, err := l.list(ctx, what.method, string(kind))
	if err != nil && len(items) > 0 && !errors.Is(ctx.Err(), context.Canceled) && l.Err() == nil {
		l.warn(fmt.Sprintf("the list of %s is cut off after %d entries: %v", kind, len(items), err))
		return items, nil
	}
	if err != nil {
		return nil, err
	}
	return items, nil
}

// warn logs and reports a problem with the app's lists, unless it is the same as last time.
func (l *Link) warn(sentence string) {
	if before := l.warned.Swap(&sentence); before != nil && *before == sentence {
		return
	}
	l.log.Warn("app lists are incomplete", "reason", sentence)
	if l.o.Report != nil {
		l.o.Report(sentence)
	}
}

// list follows the cursors of a list method (MCP 2025-11-25, server/utilities/pagination). On an error, it also returns
// the items read so far.
func (l *Link) list(ctx context.Context, method, member string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	var params json.RawMessage
	seen, size := map[string]bool{}, 0
	for range maxPages {
		raw, err := l.Call(ctx, Request{Method: method, Params: params})
		if err != nil {
			return all, err
		}
		items, cursor, err := readPage(raw, member)
		for _, item := range items {
			size += len(item)
		}
		switch size += len(cursor); {
		case len(all)+len(items) > maxItems:
			return all, fmt.Errorf("%s: the app lists more than %d %s", method, maxItems, member)
		case size > maxBytes:
			return all, fmt.Errorf("%s: the app's list, with its cursors, has more than %d bytes", method, maxBytes)
		}
		all = append(all, items...)
		switch {
		case err != nil:
			return all, fmt.Errorf("%s: %w", method, err)
		case cursor == "":
			return all, nil
		}
		if seen[cursor] {
			return all, fmt.Errorf("%s: the app sent the same cursor twice", method)
		}
		seen[cursor] = true
		if params, err = json.Marshal(map[string]string{"cursor": cursor}); err != nil {
			return all, err
		}
	}
	return all, fmt.Errorf("%s: the app has more than %d pages", method, maxPages)
}

func readPage(raw json.RawMessage, member string) (items []json.RawMessage, cursor string, err error) {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", err
	}
	list, ok := page[member]
	if !ok {
		return nil, "", errors.New("the response has no member " + member)
	}
	if trimmed := bytes.TrimLeft(list, " \t\r\n"); trimmed[0] != '[' && string(trimmed) != "null" {
		return nil, "", errors.New(member + " is not an array")
	}
	for item := range rawjson.Elements(list) {
		if items = append(items, item); len(items) > maxItems { // stop early: the whole list may not fit in memory
			break
		}
	}
	if next, ok := page["nextCursor"]; ok {
		if err := json.Unmarshal(next, &cursor); err != nil {
			return items, "", fmt.Errorf("nextCursor: %w", err)
		}
	}
	return items, cursor, nil
}
