package offer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/headerparam"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// toolName is the form of tool names. The namespace shortens a name that would be too long once the name of its server
// is added.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

const (
	maxPromptName = 128  // characters in a prompt's name; the namespace shortens it like a tool's name
	maxURI        = 4096 // bytes of a resource's URI or of a URI template
	maxFaults     = 5    // number of faults per definition that a warning lists
	maxWarnings   = 50   // number of items of a list that are named in warnings
)

// parseTools parses a list of tools. If r.Headers is set, arguments are also sent in HTTP headers
// (link.StatelessVersion), and tools whose schemas break the rules for such headers are left out.
func (r Reader) parseTools(raws []json.RawMessage) []core.Tool {
	repaired := warnings{reader: r, kind: core.KindTools, done: "corrected"}
	defer repaired.end()
	return r.Tools.Apply(parseList(r, raws, core.KindTools, func(raw json.RawMessage) (core.Tool, string, error) {
		t, name, err := parseTool(raw, r.Server)
		if err != nil {
			return t, name, err
		}
		if t.Mirrors, err = headerparam.FromSchema(t.Schema); !r.Headers {
			err = nil
		}
		var faults []string
		if err == nil {
			t.Listed, faults, err = validTool(t.Raw)
		}
		if err == nil && len(faults) > 0 {
			more := ""
			if len(faults) > maxFaults {
				more = fmt.Sprintf("; and %d more", len(faults)-maxFaults)
				faults = faults[:maxFaults]
			}
			repaired.add(name, strings.Join(faults, "; ")+more)
		}
		return t, name, err
	}))
}

// warn logs what was done about an invalid item, in the server's log and in the app's log.
func (r Reader) warn(kind core.Kind, name, done, reason string) {
	name = fmt.Sprintf("%.100q", name)
	r.Logger.Warn(done+" an item of an app's list", "list", kind, "name", name, "reason", reason)
	if r.Report != nil {
		r.Report(fmt.Sprintf("%s the %s %s: %s", done, noun(kind), name, reason))
	}
}

// warnings logs the invalid items of one list. Only the first maxWarnings are named, because an app decides how many
// there are.
type warnings struct {
	reader Reader
	kind   core.Kind
	done   string // what was done about the items: "left out" or "corrected"
	count  int
}

func (w *warnings) add(name, reason string) {
	if w.count++; w.count <= maxWarnings {
		w.reader.warn(w.kind, name, w.done, reason)
	}
}

func (w *warnings) end() {
	if more := w.count - maxWarnings; more > 0 {
		w.reader.Logger.Warn(w.done+" more items of an app's list", "list", w.kind, "items", more)
		if w.reader.Report != nil {
			w.reader.Report(fmt.Sprintf("%s %d more %ss", w.done, more, noun(w.kind)))
		}
	}
}

// noun returns the word for one item of a list.
func noun(kind core.Kind) string {
	if kind == core.KindTemplates {
		return "resource template"
	}
	return strings.TrimSuffix(string(kind), "s")
}

// parseList parses a list and keeps its order. It leaves out items that could not be requested: those without a name,
// with an invalid name, or with the same name as an earlier item. Each one is logged.
func parseList[T any](r Reader, raws []json.RawMessage, kind core.Kind, parse func(json.RawMessage) (T, string, error)) []T {
	if len(raws) == 0 {
		return nil
	}
	omitted := warnings{reader: r, kind: kind, done: "left out"}
	defer omitted.end()
	list := make([]T, 0, len(raws))
	seen := make(map[string]bool, len(raws))
	for _, raw := range raws {
		item, name, err := parse(raw)
		if err == nil && seen[name] {
			err = errors.New("the app already listed an item with this name")
		}
		if err != nil {
			omitted.add(name, err.Error())
			continue
		}
		seen[name] = true
		list = append(list, item)
	}
	return list
}

func parseTool(raw json.RawMessage, server string) (core.Tool, string, error) {
	var item struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Execution   json.RawMessage `json:"execution"`
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return core.Tool{}, "", err
	}
	t := core.Tool{
		Server: server, Name: item.Name, Raw: raw, Schema: item.InputSchema,
		ReadOnly: readOnlyHint(raw), ViewURI: viewURI(raw), TaskOnly: taskOnly(item.Execution),
	}
	if t.TaskOnly {
		t.Raw = withoutTaskSupport(raw)
	}
	switch {
	case item.Name == "":
		return t, "", errors.New("it has no name")
	case !toolName.MatchString(item.Name):
		return t, item.Name, errors.New("its name must be 1 to 128 of the characters A-Z a-z 0-9 _ . / -")
	}
	return t, item.Name, nil
}

func parsePrompt(raw json.RawMessage, server string) (core.Prompt, string, error) {
	var item struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return core.Prompt{}, "", err
	}
	p := core.Prompt{Server: server, Name: item.Name, Raw: raw}
	if item.Name == "" || utf8.RuneCountInString(item.Name) > maxPromptName || hasUnprintable(item.Name) {
		return p, item.Name, fmt.Errorf("its name must be 1 to %d printable characters", maxPromptName)
	}
	return p, item.Name, nil
}

func parseResource(raw json.RawMessage, server string) (core.Resource, string, error) {
	var item struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return core.Resource{}, "", err
	}
	return core.Resource{Server: server, URI: item.URI, Raw: raw}, item.URI, checkURI(item.URI)
}

func parseTemplate(raw json.RawMessage, server string) (core.ResourceTemplate, string, error) {
	var item struct {
		Template string `json:"uriTemplate"`
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return core.ResourceTemplate{}, "", err
	}
	return core.ResourceTemplate{Server: server, Template: item.Template, Raw: raw}, item.Template, checkURI(item.Template)
}

func checkURI(uri string) error {
	if uri == "" || len(uri) > maxURI || hasUnprintable(uri) {
		return fmt.Errorf("its URI must be 1 to %d bytes of printable characters", maxURI)
	}
	return nil
}

func hasUnprintable(text string) bool {
	return slices.ContainsFunc([]rune(text), func(r rune) bool { return !unicode.IsPrint(r) })
}

// readOnlyHint reads annotations.readOnlyHint. A malformed hint counts as absent.
func readOnlyHint(raw json.RawMessage) bool {
	var tool struct {
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	return json.Unmarshal(raw, &tool) == nil && tool.Annotations.ReadOnlyHint
}

// viewURI returns the URI of the view that shows a tool's results (MCP Apps); "" for none.
func viewURI(raw json.RawMessage) string {
	var tool struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &tool) != nil {
		return ""
	}
	var ui struct {
		ResourceURI string `json:"resourceUri"`
	}
	if json.Unmarshal(tool.Meta["ui"], &ui) == nil && ui.ResourceURI != "" {
		return ui.ResourceURI
	}
	var flat string // the older key of MCP Apps
	if json.Unmarshal(tool.Meta["ui/resourceUri"], &flat) != nil {
		return ""
	}
	return flat
}

// taskOnly reports whether a tool can only be called as a task (MCP 2025-11-25). A malformed value is ignored.
func taskOnly(execution json.RawMessage) bool {
	var x struct {
		TaskSupport string `json:"taskSupport"`
	}
	return len(execution) > 0 && json.Unmarshal(execution, &x) == nil && x.TaskSupport == "required"
}

// withoutTaskSupport returns the definition of a task-only tool without that requirement, because clients would refuse
// to call a tool that requires a task. The server runs the task for them.
func withoutTaskSupport(raw json.RawMessage) json.RawMessage {
	edited, err := rawjson.EditMember(raw, "execution", func(execution json.RawMessage) (json.RawMessage, error) {
		return rawjson.Without(execution, "taskSupport")
	})
	if err != nil {
		return raw
	}
	return edited
}
