package plugins_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// settings has a field of every type that Decode supports.
type settings struct {
	URL     string            `json:"url"`
	Port    uint16            `json:"port"`
	Depth   int8              `json:"depth"`
	Ratio   float64           `json:"ratio"`
	Verbose bool              `json:"verbose"`
	Token   plugins.Secret    `json:"token"`
	Timeout plugins.Duration  `json:"timeout"`
	Tags    []string          `json:"tags"`
	TLS     *tlsSettings      `json:"tls"`
	Roles   []roleSettings    `json:"roles"`
	Labels  map[string]string `json:"labels"`
	Hidden  string            // no tag: not a setting
}

type tlsSettings struct {
	CAFile string `json:"caFile"`
}

type roleSettings struct {
	Name string `json:"name"`
	Rank int    `json:"rank"`
}

func (s *settings) Check(problems *plugins.ConfigError) {
	if s.URL == "" {
		problems.Add("url", "is missing")
	}
}

func TestDecodeReportsEveryProblemWithItsPath(t *testing.T) {
	cases := []struct {
		name string
		json string
		want []string // "path: message" for all problems, in order
	}{
		{"nothing is wrong", `{"url": "x"}`, nil},
		{"nothing is given", ``, []string{"url: is missing"}},
		{"a typing error", `{"url": "x", "verbos": true}`, []string{`verbos: is not a setting (did you mean "verbose"?)`}},
		{"a name in another case", `{"url": "x", "URL": "y"}`, []string{`URL: is not a setting (did you mean "url"?)`}},
		{"a name like no other", `{"url": "x", "colour": 1}`, []string{`colour: is not a setting`}},
		{"a field without a tag", `{"url": "x", "Hidden": "y"}`, []string{`Hidden: is not a setting`}},
		{"a setting given twice", `{"url": "x", "url": "y"}`, []string{"url: is given twice"}},
		{"a wrong type, reported once", `{"url": 5}`, []string{"url: must be a string, not a number"}},
		{"null", `{"url": "x", "tls": null}`, []string{"tls: must not be null; leave it out to get the default"}},
		{"a number out of range", `{"url": "x", "port": 70000}`, []string{"port: must be a whole number, not negative, within range"}},
		{"a fraction where a whole number is wanted", `{"url": "x", "depth": 1.5}`, []string{"depth: must be a whole number within range"}},
		{"a word for a boolean", `{"url": "x", "verbose": "yes"}`, []string{"verbose: must be true or false, not a string"}},
		{"a duration without a unit", `{"url": "x", "timeout": "30"}`, []string{"timeout: must be a duration such as 30s or 5m"}},
		{"a number for a duration", `{"url": "x", "timeout": 30}`, []string{"timeout: must be a string, not a number"}},
		{"deep inside", `{"url": "x", "tls": {"cafile": "y"}, "roles": [{"name": "a"}, {"nam": "b", "rank": "c"}], "tags": ["a", 1], "labels": {"k": true}}`, []string{
			`tls.cafile: is not a setting (did you mean "caFile"?)`,
			`roles[1].nam: is not a setting (did you mean "name"?)`,
			"roles[1].rank: must be a whole number, not a string",
			"tags[1]: must be a string, not a number",
			"labels.k: must be a string, not true or false",
		}},
		{"a list for an object", `{"url": "x", "tls": []}`, []string{"tls: must be an object, not a list"}},
		{"an object for a list", `{"url": "x", "roles": {}}`, []string{"roles: must be a list, not an object"}},
		{"not an object", `["url"]`, []string{"must be an object, not a list", "url: is missing"}},
		{"not JSON", `{"url"`, []string{"must be one JSON object: unexpected EOF"}},
		{"two objects", `{"url": "x"} {}`, []string{"must be one JSON object: something follows it"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var into settings
			got := problems(t, plugins.Config{JSON: json.RawMessage(c.json)}.Decode(&into))
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

func problems(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	config, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok || !errors.Is(err, plugins.ErrInvalid) {
		t.Fatalf("got %v, want a ConfigError that is ErrInvalid", err)
	}
	var lines []string
	for _, p := range config.Problems {
		lines = append(lines, p.String())
	}
	return lines
}

func TestDecodeSetsTheGivenFieldsAndKeepsDefaults(t *testing.T) {
	into := settings{Timeout: plugins.Duration(time.Minute), Depth: 3, Hidden: "kept"}
	raw := `{"url": "x", "port": 65535, "ratio": 0.5, "verbose": true, "token": "secret-canary", "tags": ["a", "b"],
		"tls": {"caFile": "ca.pem"}, "roles": [{"name": "admin", "rank": 1}], "labels": {"k": "v"}}`
	if err := (plugins.Config{JSON: json.RawMessage(raw)}).Decode(&into); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(into.URL, into.Port, into.Depth, into.Ratio, into.Verbose, into.Token.Reveal(), time.Duration(into.Timeout),
		into.Tags, into.TLS.CAFile, into.Roles, into.Labels, into.Hidden)
	if want := "x65535 3 0.5 truesecret-canary1m0s [a b]ca.pem[{admin 1}] map[k:v]kept"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProblemsContainNoValuesAndOutputNoSecrets(t *testing.T) {
	var into settings
	for _, raw := range []string{
		`{"url": "x", "token": ["secret-canary"]}`,
		`{"url": "x", "timeout": "secret-canary"}`,
		`{"url": "x", "token": "secret-canary`,
		`{"url": "x", "port": "secret-canary"}`,
	} {
		if err := (plugins.Config{JSON: json.RawMessage(raw)}).Decode(&into); err == nil || strings.Contains(err.Error(), "secret-canary") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	into.Token = "secret-canary"
	marshalled, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(marshalled), fmt.Sprintf("%v %+v %#v %s %x %q", into, into, into.Token, into.Token, into.Token, into.Token)} {
		if strings.Contains(text, "secret-canary") || strings.Contains(text, "7365637265742d") {
			t.Errorf("the secret is in %s", text)
		}
	}
}
