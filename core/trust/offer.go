package trust

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// The kinds of pinned items other than tools. A pin of such an item is stored under the kind and the item's
// name or URI; tool names never contain a colon.
const (
	kindPrompt       = "prompt:"
	kindResource     = "resource:"
	kindTemplate     = "template:"
	kindInstructions = "instructions:"
)

// kindOf returns the kind of a pinned item, or "" for a tool.
func kindOf(name string) string {
	for _, kind := range []string{kindPrompt, kindResource, kindTemplate, kindInstructions} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	return ""
}

// CheckOffer returns an app's lists without the items that are held back, which are in Held. l.Tools is not used. The
// rules of Check also apply to prompts, resources and resource templates, except that an added item is never treated as
// a renamed one. Instructions, which the app sends in its handshake, are held back if they changed. If an app sends no
// instructions, this fact is pinned as well.
func (p *Pins) CheckOffer(ctx context.Context, l Listing, offer core.Offer, instructions string) (core.Offer, error) {
	if p.o.Mode == PinOff {
		return offer, nil
	}
	shown, l2 := offer, l
	l2.Tools = offer.Tools
	var err error
	if shown.Tools, shown.Held, err = p.Check(ctx, l2); err != nil {
		return offer, err
	}
	keep := func(kind string, items []core.Tool) (map[string]bool, error) {
		if len(items) == 0 {
			return nil, nil
		}
		of := l
		of.Tools, of.Before, of.kind = items, nil, kind
		_, held, err := p.Check(ctx, of)
		shown.Held = append(slices.Clone(shown.Held), held...)
		names := map[string]bool{}
		for _, h := range held {
			names[h.Name] = true
		}
		return names, err
	}
	shown.Prompts, err = kept(kindPrompt, offer.Prompts, keep, func(i core.Prompt) core.Tool {
		return core.Tool{Server: i.Server, Name: kindPrompt + i.Name, Raw: i.Raw}
	})
	if err != nil {
		return offer, err
	}
	shown.Resources, err = kept(kindResource, offer.Resources, keep, func(i core.Resource) core.Tool {
		return core.Tool{Server: i.Server, Name: kindResource + i.URI, Raw: withoutState(i.Raw)}
	})
	if err != nil {
		return offer, err
	}
	shown.Templates, err = kept(kindTemplate, offer.Templates, keep, func(i core.ResourceTemplate) core.Tool {
		return core.Tool{Server: i.Server, Name: kindTemplate + i.Template, Raw: withoutState(i.Raw)}
	})
	if err != nil {
		return offer, err
	}
	if l.Key.Account != "" { // nobody sees the instructions for one account
		return shown, nil
	}
	raw, err := json.Marshal(map[string]string{"text": instructions})
	if err != nil {
		return offer, err
	}
	_, err = keep(kindInstructions, []core.Tool{{Server: l.Key.App, Name: kindInstructions, Raw: raw}})
	return shown, err
}

// kept returns the items that are not held back.
func kept[T any](kind string, items []T, check func(string, []core.Tool) (map[string]bool, error), as func(T) core.Tool) ([]T, error) {
	pinned := make([]core.Tool, len(items))
	for i, item := range items {
		pinned[i] = as(item)
	}
	held, err := check(kind, pinned)
	if err != nil || len(held) == 0 {
		return items, err
	}
	return slices.DeleteFunc(slices.Clone(items), func(item T) bool { return held[as(item).Name] }), nil
}

// withoutState returns a resource without its size and the time of its last change, which belong to its
// content. An ambiguous one is returned unchanged, and has no definition.
func withoutState(raw json.RawMessage) json.RawMessage {
	if rawjson.CheckUnique(raw) != nil || len(rawjson.LoneSurrogates(raw)) > 0 {
		return raw
	}
	value, err := rawjson.Decode(raw)
	members, ok := value.(map[string]any)
	if err != nil || !ok {
		return raw
	}
	delete(members, "size")
	if annotations, ok := members["annotations"].(map[string]any); ok {
		delete(annotations, "lastModified")
	}
	return json.RawMessage(encode(members))
}
