package config

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config/schema"
)

// FuzzLoad checks that no file crashes the parser, that every rejection has problems with a place, and that
// accepted configurations are within the limits that everything else relies on.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "http: {port: 1}", "auth: {adapter: x, path: p}", "apps: {a: {url: https://x}}", "a: &a [*a]", "? {a: b}\n: c", "apiKey: ${env:A}",
		`auth: {adapter: "${env:A}"}`, `registries: [{name: "${env:A}", adapter: b}, {name: "${env:A}", adapter: b}]`, `http: {host: "${env:A}"}`,
		`log: {level: "${env:A}"}`, `apps: {a: {url: "${env:A}"}}`,
		"registries:\n- {name: a, adapter: b}\n- {name: a, adapter: b}\n", "\xff\xfe", "log: !!binary aGk=", "{\"log\": {\"level\": \"info\"}}", "- - - -", "sessionStore: redis",
	} {
		f.Add(seed)
	}
	var o Options
	builtins(&o)
	o.Environment = Environment{"A": "canary-from-the-environment"}
	sc, err := schema.New(o.Adapters)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, problems, err := build(sc, o, "/home", "/home/ropewalk.yaml", []byte(text))
		if err == nil && len(problems) > 0 {
			err = problems.Sorted()
		}
		if err != nil {
			if strings.Contains(err.Error(), "canary-of") {
				t.Fatalf("a problem shows the value of an environment variable: %v", err)
			}
			if said(t, err) == "" {
				t.Fatal("an error without a problem")
			}
			return
		}
		if c.HTTP.Port < 0 || c.HTTP.Port > 65535 || c.MCP.MaxSessions < 1 || c.MCP.SessionTTL <= 0 || (c.Dev() && !Loopback(c.HTTP.Host)) {
			t.Fatalf("accepted an impossible configuration: %+v", c)
		}
		all := []Plugin{c.SessionStore}
		for _, a := range c.Auth {
			all = append(all, a.Plugin)
		}
		for _, p := range all {
			if (p.Path == "") != (p.SHA256 == "") {
				t.Fatalf("a path and its hash belong together: %+v", p)
			}
		}
	})
}
