package trust

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// These limit the pins of one version of an app, for each kind of item, together with the changes that wait for a
// decision. Further tools are held back and not recorded.
const (
	maxPins     = 10_000
	maxPinBytes = 64 << 20 // bytes of all definitions, four times what an app can list at once
)

// Listing is a list of tools from an app.
type Listing struct {
	Key   core.PinKey
	Tools []core.Tool
	// Dynamic is set for an app that announces changes to its list, and so may replace its tools while it runs.
	Dynamic bool
	// Before contains the tools that added ones may replace; nil means all pinned tools. It is for the list of one
	// session, which need not have the tools that were added in another.
	Before []core.Tool

	kind string // the kind of the listed items; "" for tools
}

// Check returns the tools of a listing that may be used, in order, and those that are held back.
//
// The first tools listed for a version of a bundle are pinned, and so are those added later: nobody has
// accepted a different definition under their name. The list of an account is compared with the definitions that were
// accepted for the account or for all accounts. A tool that differs is held back, and pinned, for this account only.
//
// Two kinds of tools are held back. One is a pinned tool whose definition differs. The other is an added tool that
// appears to replace a pinned tool that is gone, because it has the same description or parameters. If an app does not
// announce changes to its list, every added tool is treated as a replacement.
//
// The records are read and written only when a list differs from the records that were last read. If that fails,
// previously accepted tools remain in use, and the others are held back until they can be checked. Check returns an
// error only if nothing is known about the app.
func (p *Pins) Check(ctx context.Context, l Listing) (allowed []core.Tool, held []core.HeldTool, err error) {
	if p.o.Mode == PinOff {
		return l.Tools, nil, nil
	}
	c := &check{p: p, l: l, accepted: p.lookup(l.Key)}
	if l.Key.Account != "" {
		c.common = p.lookup(withoutAccount(l.Key))
	}
	if c.accepted != nil && c.compare() {
		return l.Tools, nil, nil
	}
	if err = c.resolve(ctx); err != nil && c.accepted == nil && p.o.Mode == PinEnforce {
		return nil, nil, fmt.Errorf("cannot read its tools' pinned definitions: %w", err)
	}
	if err != nil {
		p.o.Logger.Warn("could not compare an app's changed tools with their pins", "app", l.Key.App, "held", p.o.Mode == PinEnforce, "error", err)
		p.checkLater(l.Key.Workspace, l.Key.App)
	}
	if p.o.Mode == PinWarn {
		return l.Tools, nil, nil
	}
	for i, t := range l.Tools {
		if reason := c.reasons[i]; reason != "" {
			held = append(held, core.HeldTool{Server: t.Server, Name: t.Name, Reason: reason})
		} else {
			allowed = append(allowed, t)
		}
	}
	return allowed, held, nil
}

func (p *Pins) lookup(k core.PinKey) map[string]digest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[k]
}

// check is one comparison of a listing with its pins.
type check struct {
	p        *Pins
	l        Listing
	accepted map[string]digest // nil while nothing is known
	common   map[string]digest // for the list of an account: the definitions that were accepted for all accounts

	pins        map[string]core.Pin
	size        int      // bytes of all definitions in pins
	definitions []string // the definitions of the listed tools; "" for a tool without a definition
	reasons     []string // why each tool is held back; "" if it is not
}

// compare reports whether every tool is accepted unchanged. It sets definitions and reasons.
func (c *check) compare() bool {
	c.definitions, c.reasons = make([]string, len(c.l.Tools)), make([]string, len(c.l.Tools))
	equal := true
	for i, t := range c.l.Tools {
		definition, err := Definition(t.Raw)
		if err != nil {
			c.reasons[i], equal = c.reason(t.Name, err.Error()), false
			continue
		}
		c.definitions[i] = definition
		if d := digestOf(definition); !equals(c.accepted, t.Name, d) && !equals(c.common, t.Name, d) {
			c.reasons[i], equal = c.reason(t.Name, "its definition could not be compared with the accepted one"), false
		}
	}
	return equal
}

func equals(accepted map[string]digest, tool string, d digest) bool {
	pinned, ok := accepted[tool]
	return ok && pinned == d
}

// withoutAccount returns the key of the definitions that were accepted for all accounts.
func withoutAccount(k core.PinKey) core.PinKey {
	k.Account = ""
	return k
}

// resolve rereads the pins, pins new tools and records the changes.
func (c *check) resolve(ctx context.Context) error {
	if err := c.read(ctx); err != nil {
		c.compare()
		return err
	}
	first := len(c.pins) == 0
	if c.compare() {
		return nil
	}
	added, known := map[string]string{}, len(c.pins)
	var renamed []core.Pin
	gone := sync.OnceValue(c.goneTools)
	for i, t := range c.l.Tools {
		if _, pinned := c.pins[t.Name]; pinned || c.definitions[i] == "" {
			continue
		}
		from, replaces := gone().replacedBy(c.definitions[i])
		switch {
		case known >= maxPins:
			c.reasons[i] = c.reason(t.Name, fmt.Sprintf("the app has listed more than %d different tools", maxPins))
			continue
		case c.size+len(c.definitions[i]) > maxPinBytes:
			c.reasons[i] = c.tooLarge(t.Name)
			continue
		case !first && replaces:
			renamed = append(renamed, core.Pin{Tool: t.Name, Offered: c.definitions[i], RenamedFrom: from})
		default:
			added[t.Name] = c.definitions[i]
		}
		known++
		c.size += len(c.definitions[i])
	}
	if err := c.add(ctx, added, first); err != nil {
		return err
	}
	return c.offer(ctx, renamed)
}

func (c *check) tooLarge(tool string) string {
	return c.reason(tool, fmt.Sprintf("the app has listed definitions with more than %d bytes", maxPinBytes))
}

func (c *check) read(ctx context.Context) error {
	pins, accepted, err := c.p.read(ctx, c.l.Key)
	if err != nil { // tools that were accepted before remain accepted
		return err
	}
	c.pins, c.accepted = pins, accepted
	if c.l.Key.Account != "" {
		common, accepted, err := c.p.read(ctx, withoutAccount(c.l.Key))
		if err != nil {
			return err
		}
		c.common = accepted
		for tool, pin := range common {
			if _, own := c.pins[tool]; !own {
				c.pins[tool] = core.Pin{Tool: tool, Definition: pin.Definition}
			}
		}
	}
	maps.DeleteFunc(c.pins, func(tool string, _ core.Pin) bool { return kindOf(tool) != c.l.kind })
	c.size = 0
	for _, pin := range c.pins {
		c.size += len(pin.Definition) + len(pin.Offered)
	}
	return nil
}

// read reads the pins of a key, and remembers the accepted definitions.
func (p *Pins) read(ctx context.Context, k core.PinKey) (pins map[string]core.Pin, accepted map[string]digest, err error) {
	if pins, err = p.o.Records.Pins(ctx, k); err != nil {
		return nil, nil, err
	}
	if pins == nil {
		pins = map[string]core.Pin{}
	}
	accepted = make(map[string]digest, len(pins))
	for tool, pin := range pins {
		accepted[tool] = digestOf(pin.Definition)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A remote app may report a different version at each connection, so only its current one is remembered.
	maps.DeleteFunc(p.known, func(other core.PinKey, _ map[string]digest) bool {
		return other.Workspace == k.Workspace && other.App == k.App && other.Account == k.Account
	})
	p.known[k] = accepted
	return pins, accepted, nil
}

// goneTools contains the accepted tools that an app no longer lists. An added tool may replace one of them.
type goneTools struct {
	first  string            // by name; "" for none
	traits map[digest]string // the first tool, by name, that has a trait
	always bool              // every added tool seems to replace one of them
}

func (c *check) goneTools() goneTools {
	gone := goneTools{traits: map[digest]string{}, always: !c.l.Dynamic}
	if c.l.kind != "" {
		return gone
	}
	listed, before := namesOf(c.l.Tools), namesOf(c.l.Before)
	for _, tool := range slices.Sorted(maps.Keys(c.pins)) {
		if listed[tool] || c.l.Before != nil && !before[tool] || c.pins[tool].Definition == "" {
			continue
		}
		gone.first = cmp.Or(gone.first, tool)
		for _, trait := range traitsOf(c.pins[tool].Definition) {
			if _, known := gone.traits[trait]; !known {
				gone.traits[trait] = tool
			}
		}
	}
	return gone
}

func namesOf(tools []core.Tool) map[string]bool {
	names := make(map[string]bool, len(tools))
	for _, t := range tools {
		names[t.Name] = true
	}
	return names
}

// replacedBy returns the tool that an added one with this definition seems to replace.
func (g goneTools) replacedBy(definition string) (from string, ok bool) {
	if g.first == "" {
		return "", false
	}
	for _, trait := range traitsOf(definition) {
		if tool, similar := g.traits[trait]; similar && (from == "" || tool < from) {
			from = tool
		}
	}
	if from == "" && g.always {
		from = g.first
	}
	return from, from != ""
}

// add pins tools without another accepted definition. If several servers try, one succeeds. The others then compare the
// tools with its pins.
func (c *check) add(ctx context.Context, added map[string]string, first bool) error {
	if len(added) == 0 {
		return nil
	}
	if err := c.p.o.Records.AddPins(ctx, c.l.Key, added); err != nil {
		return err
	}
	if err := c.read(ctx); err != nil {
		return err
	}
	c.compare()
	for _, t := range c.l.Tools {
		if definition, ok := added[t.Name]; ok && !first && c.pins[t.Name].Definition == definition {
			c.p.o.Logger.Info("app has added a tool", "workspace", c.l.Key.Workspace, "app", c.l.Key.App, "tool", t.Name)
			c.p.publish(c.l.Key, core.EventPinAdded, core.PinAdded{Server: c.l.Key.App, Tool: t.Name, Version: c.l.Key.Version})
		}
	}
	return nil
}

// offer records the changes that wait for a decision, and sets the reason why each tool is held back.
func (c *check) offer(ctx context.Context, renamed []core.Pin) error {
	for i, t := range c.l.Tools {
		if c.reasons[i] == "" || c.definitions[i] == "" {
			continue
		}
		pin, known := c.pins[t.Name]
		if at := slices.IndexFunc(renamed, func(p core.Pin) bool { return p.Tool == t.Name }); !known && at >= 0 {
			pin = renamed[at]
		} else if !known {
			continue // too many tools
		}
		if pin.Offered != c.definitions[i] {
			pin.Refused = false
		}
		grown := len(c.definitions[i]) - len(pin.Offered) // 0 for a renamed one, which has already been counted
		if grown > 0 && c.size+grown > maxPinBytes {
			c.reasons[i] = c.tooLarge(t.Name)
			continue
		}
		c.size += grown
		pin.Offered = c.definitions[i]
		c.reasons[i] = c.changed(pin)
		first, err := c.p.o.Records.OfferPin(ctx, c.l.Key, pin)
		if err != nil {
			return err
		}
		if first {
			c.announce(pin)
		}
	}
	return nil
}

// changed returns why a changed tool is held back.
func (c *check) changed(pin core.Pin) string {
	switch {
	case pin.Refused:
		return c.reason(pin.Tool, "an administrator has refused its changed definition")
	case pin.RenamedFrom != "":
		return c.reason(pin.Tool, fmt.Sprintf("it seems to be %q under another name, without a new version of the app", pin.RenamedFrom))
	case c.l.Key.Account != "":
		return c.reason(pin.Tool, "your account sees a definition of it that differs from the accepted one")
	}
	return c.reason(pin.Tool, "its definition changed without a new version of the app")
}

func (c *check) reason(tool, why string) string {
	kind, name, listed := strings.Cut(tool, ":")
	if !listed || c.l.kind == "" {
		kind, name = "tool", tool
	}
	return fmt.Sprintf("%s %q of app %q is held back: %s; an administrator of the workspace can accept it (GET /v1/pins, ropewalk tool pins)",
		kind, name, c.l.Key.App, why)
}

func (c *check) announce(pin core.Pin) {
	before := pin.Definition
	if pin.RenamedFrom != "" {
		before = c.pins[pin.RenamedFrom].Definition
	}
	k, held := c.l.Key, c.p.o.Mode == PinEnforce
	c.p.o.Logger.Warn("app has changed a tool without a new version", "workspace", k.Workspace, "app", k.App, "version", k.Version,
		"tool", pin.Tool, "renamed_from", pin.RenamedFrom, "held", held)
	c.p.publish(k, core.EventPinChanged, core.PinChanged{
		ID: changeID(k, pin), Server: k.App, Tool: pin.Tool, Version: k.Version, RenamedFrom: pin.RenamedFrom, Held: held,
		Changes: Differences(before, pin.Offered),
	})
}
