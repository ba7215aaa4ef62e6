package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// fullName is what a tool may be called, its server's prefix included (contract part 7).
var fullName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,64}$`)

const (
	maxPromptName = 64   // characters of a prompt's name, its server's prefix included (contract part 7)
	maxURI        = 4096 // bytes of a resource's URI or a template
)

// rereadPause is the least time between two readings of an app's lists, so that an app that
// announces changes without end costs little. The first announcement is followed at once.
const rereadPause = 100 * time.Millisecond

// extrasPatience is how long an app that starts may take for the lists besides its tools: it runs
// without those it did not give by then.
const extrasPatience = 5 * time.Second

// methodNotFound is what an app without a list answers to it (JSON-RPC 2.0, 5.1).
const methodNotFound = -32601

func kinds() []core.Kind {
	return []core.Kind{core.KindTools, core.KindPrompts, core.KindResources, core.KindTemplates}
}

// reread reads lists of a running app again and shows them when they differ.
func (a *app) reread(ctx context.Context, conn instance, changed []core.Kind) {
	limit, cancel := context.WithTimeout(ctx, a.manager.o.StartTimeout)
	defer cancel()
	offer := a.now.Load().offer
	for _, kind := range changed {
		if err := a.readList(limit, conn, kind, &offer); err != nil {
			a.log.Warn("An app said that a list changed, but did not give it; the old one stays", "list", kind, "error", err)
		}
	}
	if len(differing(&offer, &a.now.Load().offer)) > 0 {
		a.become(same, func(v *view) { v.setOffer(offer) })
	}
}

// readOffer reads all lists of an app that starts, at the same time. Only its tools are waited for
// as long as ctx lasts, and only they fail the start.
func (a *app) readOffer(ctx context.Context, conn instance) (core.Offer, error) {
	extras, cancel := context.WithTimeout(ctx, extrasPatience)
	defer cancel()
	var offer core.Offer
	var reading sync.WaitGroup
	for _, kind := range kinds()[1:] {
		reading.Go(func() {
			if err := a.readList(extras, conn, kind, &offer); err != nil && ctx.Err() == nil {
				a.log.Warn("An app runs without a list that it did not give", "list", kind, "error", err)
			}
		})
	}
	err := a.readList(ctx, conn, core.KindTools, &offer)
	if err != nil {
		cancel()
	}
	reading.Wait()
	return offer, err
}

// readList asks an app for one list and puts it into offer. An app that does not know it has none.
func (a *app) readList(ctx context.Context, conn instance, kind core.Kind, offer *core.Offer) error {
	raws, err := conn.List(ctx, kind)
	if failure, ok := errors.AsType[*rpc.Error](err); ok && failure.Code == methodNotFound {
		raws, err = nil, nil
	}
	if err != nil {
		return err
	}
	server := a.key.name
	switch kind {
	case core.KindTools:
		offer.Tools = parseTools(raws, server, a.now.Load().record.Remote != nil && conn.Info().Stateless, a.log)
	case core.KindPrompts:
		offer.Prompts = parseList(raws, kind, a.log, func(raw json.RawMessage) (core.Prompt, string, error) { return parsePrompt(raw, server) })
	case core.KindResources:
		offer.Resources = parseList(raws, kind, a.log, func(raw json.RawMessage) (core.Resource, string, error) { return parseResource(raw, server) })
	case core.KindTemplates:
		offer.Templates = parseList(raws, kind, a.log, func(raw json.RawMessage) (core.ResourceTemplate, string, error) { return parseTemplate(raw, server) })
	}
	return nil
}

// parseTools reads a list of tools. Over HTTP, in link.StatelessVersion, arguments travel in headers
// as well: strict leaves out the tools that mark them against the rules.
func parseTools(raws []json.RawMessage, server string, strict bool, log hclog.Logger) []core.Tool {
	return parseList(raws, core.KindTools, log, func(raw json.RawMessage) (core.Tool, string, error) {
		t, name, err := parseTool(raw, server)
		if err != nil {
			return t, name, err
		}
		if t.Mirrors, err = mirrorsOf(t.Schema); !strict {
			err = nil
		}
		return t, name, err
	})
}

// parseList keeps the order of raws. What nobody could ask for is left out, each with a log line:
// what is no object with a name, a name that does not fit, and one that is given twice.
func parseList[T any](raws []json.RawMessage, kind core.Kind, log hclog.Logger, parse func(json.RawMessage) (T, string, error)) []T {
	if len(raws) == 0 {
		return nil
	}
	list := make([]T, 0, len(raws))
	seen := make(map[string]bool, len(raws))
	for _, raw := range raws {
		item, name, err := parse(raw)
		if err == nil && seen[name] {
			err = errors.New("the app lists another one of this name before it")
		}
		if err != nil {
			log.Warn("An item of an app's list is left out", "list", kind, "name", fmt.Sprintf("%.100q", name), "reason", err)
			continue
		}
		seen[name] = true
		list = append(list, item)
	}
	return list
}

func parseTool(raw json.RawMessage, server string) (core.Tool, string, error) {
	var said struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return core.Tool{}, "", err
	}
	t := core.Tool{
		Server: server, Name: said.Name, Raw: raw, Schema: said.InputSchema,
		ReadOnly: readOnlyHint(raw), ViewURI: viewURI(raw),
	}
	switch {
	case said.Name == "":
		return t, "", errors.New("it has no name")
	case !fullName.MatchString(t.FullName()):
		return t, said.Name, errors.New("its name with the app's prefix must be 1 to 64 of the characters A-Z a-z 0-9 _ . / -")
	}
	return t, said.Name, nil
}

func parsePrompt(raw json.RawMessage, server string) (core.Prompt, string, error) {
	var said struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return core.Prompt{}, "", err
	}
	p := core.Prompt{Server: server, Name: said.Name, Raw: raw}
	if said.Name == "" || utf8.RuneCountInString(p.FullName()) > maxPromptName || strange(said.Name) {
		return p, said.Name, fmt.Errorf("its name with the app's prefix must be 1 to %d printable characters", maxPromptName)
	}
	return p, said.Name, nil
}

func parseResource(raw json.RawMessage, server string) (core.Resource, string, error) {
	var said struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return core.Resource{}, "", err
	}
	return core.Resource{Server: server, URI: said.URI, Raw: raw}, said.URI, checkURI(said.URI)
}

func parseTemplate(raw json.RawMessage, server string) (core.ResourceTemplate, string, error) {
	var said struct {
		Template string `json:"uriTemplate"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return core.ResourceTemplate{}, "", err
	}
	return core.ResourceTemplate{Server: server, Template: said.Template, Raw: raw}, said.Template, checkURI(said.Template)
}

func checkURI(uri string) error {
	if uri == "" || len(uri) > maxURI || strange(uri) {
		return fmt.Errorf("its URI must be 1 to %d bytes of printable characters", maxURI)
	}
	return nil
}

func strange(text string) bool {
	return slices.ContainsFunc([]rune(text), func(r rune) bool { return !unicode.IsPrint(r) })
}

// readOnlyHint and viewURI read hints: one that is malformed counts as absent, the tool stays.
func readOnlyHint(raw json.RawMessage) bool {
	var said struct {
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	return json.Unmarshal(raw, &said) == nil && said.Annotations.ReadOnlyHint
}

func viewURI(raw json.RawMessage) string {
	var said struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	var ui struct {
		ResourceURI string `json:"resourceUri"`
	}
	if json.Unmarshal(said.Meta["ui"], &ui) == nil && ui.ResourceURI != "" {
		return ui.ResourceURI
	}
	var flat string // the older key of MCP Apps
	if json.Unmarshal(said.Meta["ui/resourceUri"], &flat) != nil {
		return ""
	}
	return flat
}

// differing are the lists in which two offers differ.
func differing(a, b *core.Offer) (lists []core.Kind) {
	for kind, equal := range map[core.Kind]bool{
		core.KindTools:     slices.EqualFunc(a.Tools, b.Tools, func(a, b core.Tool) bool { return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw) }),
		core.KindPrompts:   slices.EqualFunc(a.Prompts, b.Prompts, func(a, b core.Prompt) bool { return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw) }),
		core.KindResources: slices.EqualFunc(a.Resources, b.Resources, func(a, b core.Resource) bool { return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw) }),
		core.KindTemplates: slices.EqualFunc(a.Templates, b.Templates, func(a, b core.ResourceTemplate) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
	} {
		if !equal {
			lists = append(lists, kind)
		}
	}
	return lists
}
