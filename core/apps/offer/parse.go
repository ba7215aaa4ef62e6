package offer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/headerparam"
)

// toolName is the form of tool names. The namespace shortens those that are too long with their
// server's prefix.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

const (
	maxPromptName = 64   // characters of a prompt's name, its server's prefix included
	maxURI        = 4096 // bytes of a resource's URI or a template
)

// parseTools reads a list of tools. With headers, arguments travel in HTTP headers as well
// (link.StatelessVersion), and tools whose schema marks them against the rules are left out.
func parseTools(raws []json.RawMessage, server string, headers bool, log hclog.Logger) []core.Tool {
	return parseList(raws, core.KindTools, log, func(raw json.RawMessage) (core.Tool, string, error) {
		t, name, err := parseTool(raw, server)
		if err != nil {
			return t, name, err
		}
		if t.Mirrors, err = headerparam.FromSchema(t.Schema); !headers {
			err = nil
		}
		return t, name, err
	})
}

// parseList keeps the order of raws. Items that cannot be asked for are left out, each with a log
// line: those without a name, with a name that is not allowed, and with the name of an earlier item.
func parseList[T any](raws []json.RawMessage, kind core.Kind, log hclog.Logger, parse func(json.RawMessage) (T, string, error)) []T {
	if len(raws) == 0 {
		return nil
	}
	list := make([]T, 0, len(raws))
	seen := make(map[string]bool, len(raws))
	for _, raw := range raws {
		item, name, err := parse(raw)
		if err == nil && seen[name] {
			err = errors.New("the app lists another item of this name before it")
		}
		if err != nil {
			log.Warn("item of an app's list left out", "list", kind, "name", fmt.Sprintf("%.100q", name), "reason", err)
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
	if item.Name == "" || utf8.RuneCountInString(p.FullName()) > maxPromptName || hasUnprintable(item.Name) {
		return p, item.Name, fmt.Errorf("its name with the app's prefix must be 1 to %d printable characters", maxPromptName)
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
