package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

func TestEverySettingInTheSchemaIsDescribedAndDocumented(t *testing.T) {
	s, err := schema.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	example := listSettings(t, "", s, s.At("#/")).(map[string]any)
	delete(example, "$schema")
	raw, err := json.Marshal(example)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(new(document)); err != nil {
		t.Errorf("the schema has a setting that nothing reads: %v\n%s", err, raw)
	}
}

// listSettings checks every part of the schema and returns a value that sets everything.
func listSettings(t *testing.T, path string, s *schema.Schema, part map[string]any) any {
	t.Helper()
	if ref, ok := part["$ref"].(string); ok {
		part = s.At(ref)
	}
	if part["description"] == nil && !strings.HasSuffix(path, "*") && !strings.HasSuffix(path, "]") {
		t.Errorf("%s has no description", path)
	}
	kind, _ := part["type"].(string)
	if kinds, many := part["type"].([]any); many {
		kind = kinds[len(kinds)-1].(string)
	}
	switch kind {
	case "object":
		out := make(map[string]any)
		properties, _ := part["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			out[key] = listSettings(t, layer.Join(path, key), s, properties[key].(map[string]any))
		}
		if other, ok := part["additionalProperties"].(map[string]any); ok {
			out["x"] = listSettings(t, path+".*", s, other)
		}
		return out
	case "array":
		return []any{listSettings(t, path+"[]", s, part["items"].(map[string]any))}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	return "x"
}

func TestTheSchemaForEditorsKnowsTheSettingsOfBuiltInAdapters(t *testing.T) {
	var o Options
	builtins(&o)
	raw, err := jsonOf(o.Adapters)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"folder"`, `"const": "directory"`, `"default": 27247`, `"streamable-http"`, `"$schema": "https://json-schema.org/draft/2020-12/schema"`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("the schema has no %s", part)
		}
	}
	for name, bad := range map[string]schema.Adapter{
		"not JSON":      {Kind: "auth", Name: "x", Settings: json.RawMessage(`{`)},
		"not an object": {Kind: "auth", Name: "x", Settings: json.RawMessage(`true`)},
		"not a kind":    {Kind: "audio", Name: "x", Settings: json.RawMessage(`{}`)},
		"not a schema":  {Kind: "auth", Name: "x", Settings: json.RawMessage(`{"type": 5}`)},
	} {
		if _, err := jsonOf([]schema.Adapter{bad}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnAdapterIsDescribedByTheStructOfItsSettings(t *testing.T) {
	type tls struct {
		CA string `json:"ca"`
	}
	type settings struct {
		URL     core.Secret       `json:"url"`
		Since   *netip.Addr       `json:"since"` // reads itself from text
		Retries uint8             `json:"retries,omitempty"`
		Rate    float64           `json:"rate"`
		Strict  bool              `json:"strict"`
		Scopes  []string          `json:"scopes"`
		Roles   map[string]string `json:"roles"`
		TLS     *tls              `json:"tls"`
		Extra   any               `json:"extra"`
		Ignored string            `json:"-"`
		Untyped string
		Raw     json.RawMessage `json:"raw"`
	}
	described := func(o *Options) {
		o.Adapters = []schema.Adapter{schema.Describe("sessionstore", "mine", settings{})}
	}
	mustLoad(t, "sessionStore: {adapter: mine, url: a, since: 1.2.3.4, retries: 3, rate: 1, strict: true, scopes: [a], roles: {a: b}, tls: {ca: x}, extra: [1], raw: {a: 1}}", nil, described)
	_, err := load(t, "sessionStore: {adapter: mine, uri: a, since: 5, retries: x, rate: x, strict: 1, scopes: a, roles: [], tls: {cs: x}, Ignored: a, Untyped: b}", nil, described)
	var got []string
	for line := range strings.SplitSeq(said(t, err), "\n") {
		_, problem, _ := strings.Cut(line, ": sessionStore.")
		problem, _, _ = strings.Cut(problem, "; known names are")
		got = append(got, problem)
	}
	slices.Sort(got)
	equal(t, "problems", got, []string{
		"Ignored: unknown key", "Untyped: unknown key", "rate: must be a number, not text", "retries: must be a whole number, not text",
		"roles: must be a mapping, not a list", "scopes: must be a list, not text", "since: must be text, not a number",
		"strict: must be true or false, not a number", "tls.cs: unknown key; did you mean ca?", "uri: unknown key; did you mean url?",
	})
}

func TestLoadingDoesNotChangeTheSchema(t *testing.T) {
	s, err := schema.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := build(s, Options{}, "/home", "", []byte("features: {delegation: false}\nlog: {}")); err != nil {
		t.Fatal(err)
	}
	if after, err := s.JSON(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the schema changed (%v):\n%s\n%s", err, before, after)
	}
}

func TestSettingsAreCheckedAgainstAnAdaptersSchemaOnlyIfThatAdapterIsUsed(t *testing.T) {
	type settings struct {
		URL string `json:"url"`
	}
	for name, c := range map[string]struct {
		text  string
		wrong bool
	}{
		"its own setting":                        {"sessionStore: {adapter: mine, url: x}", false},
		"a setting that it does not have":        {"sessionStore: {adapter: mine, ulr: x}", true},
		"just its name":                          {"sessionStore: mine", false},
		"another executable under the same name": {"sessionStore: {adapter: mine, path: /bin/other, sha256: " + strings.Repeat("0", 64) + ", ulr: x}", false},
		"another adapter with its own settings":  {"sessionStore: {adapter: theirs, ulr: x}", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.text, nil, func(o *Options) {
				o.Adapters = []schema.Adapter{schema.Describe("sessionstore", "mine", settings{}), {Kind: "sessionstore", Name: "theirs"}}
			})
			if (err != nil) != c.wrong {
				t.Errorf("it returned %v", err)
			}
		})
	}
}

func TestAMisspelledAdapterKeyIsReportedEvenThoughAdaptersHaveTheirOwnKeys(t *testing.T) {
	_, err := load(t, "auth:\n  adaptor: oidc\n  issuer: https://id.example.com\n", nil, builtins)
	for _, want := range []string{"ropewalk.yaml:1: auth.adapter: is required", "ropewalk.yaml:2: auth.adaptor: unknown key; did you mean adapter?"} {
		if got := said(t, err); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func jsonOf(adapters []schema.Adapter) (json.RawMessage, error) {
	s, err := schema.New(adapters)
	if err != nil {
		return nil, err
	}
	return s.JSON()
}
