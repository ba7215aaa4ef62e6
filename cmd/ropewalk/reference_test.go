package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

var update = flag.Bool("update", false, "write docs/configuration.md and docs/commands.md")

const referencePath = "../../docs/configuration.md"

// To generate docs/configuration.md, run: go test ./cmd/ropewalk -run Reference -update
func TestTheConfigurationReferenceMatchesTheSchema(t *testing.T) {
	t.Parallel()
	document, err := schema.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	r := &reference{root: schema}
	r.WriteString("# Configuration\n\nGenerated from the schema (`ropewalk config schema`). Adapters have their own settings: " +
		"[adapters.md](adapters.md).\n\n`ropewalk reload` applies changes to `" + strings.Join(config.Reloadable(), "`, `") + "`. Everything else needs a restart, " +
		"including turning authentication or the audit log on or off; the exit status is then 3.\n\n| Setting | Type | Default | Meaning |\n|---|---|---|---|\n")
	r.object("", schema, 0)
	isCommitted(t, referencePath, r.String())
}

// isCommitted checks that a page has the text that was generated for it; with -update, it writes the page instead.
func isCommitted(t *testing.T, path, generated string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(generated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != generated {
		t.Errorf("%s is not up to date: go test ./cmd/ropewalk -run Reference -update", path)
	}
}

// reference builds the page.
type reference struct {
	strings.Builder
	root map[string]any
}

// resolve resolves a reference within the schema.
func (r *reference) resolve(s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	var at any = r.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	target := maps.Clone(at.(map[string]any))
	for _, key := range []string{"description", "default"} {
		if v, ok := s[key]; ok {
			target[key] = v
		}
	}
	return target
}

// depth limits how deeply objects are followed.
const depth = 4

func (r *reference) object(path string, s map[string]any, level int) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		r.setting(strings.TrimPrefix(path+"."+name, "."), r.resolve(p), level)
	}
	if each, ok := s["additionalProperties"].(map[string]any); ok {
		r.setting(path+".<name>", r.resolve(each), level)
	}
}

func (r *reference) setting(path string, p map[string]any, level int) {
	_, isObject := p["properties"]
	if items, ok := p["items"].(map[string]any); ok && !isObject {
		if items = r.resolve(items); items["properties"] != nil && level < depth {
			r.object(path+"[]", items, level+1)
			return
		}
	}
	_, isMap := p["additionalProperties"].(map[string]any)
	if (isObject || isMap) && level < depth {
		r.object(path, p, level+1)
		return
	}
	kind := ""
	switch t := p["type"].(type) {
	case string:
		kind = t
	case []any:
		kind = strings.Trim(fmt.Sprint(t), "[]")
	}
	if e, ok := p["enum"].([]any); ok {
		kind = strings.ReplaceAll(strings.Trim(fmt.Sprint(e), "[]"), " ", ", ")
	}
	value := ""
	if d, ok := p["default"]; ok {
		text, err := json.Marshal(d)
		if err == nil {
			value = "`" + string(text) + "`"
		}
	}
	about, _ := p["description"].(string)
	fmt.Fprintf(r, "| `%s` | %s | %s | %s |\n", path, kind, value, strings.ReplaceAll(strings.ReplaceAll(about, "\n", " "), "|", "\\|"))
}
