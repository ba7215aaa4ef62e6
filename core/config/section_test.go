package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

func TestASectionOnItsOwnIsReadAsInAWholeConfiguration(t *testing.T) {
	env := config.Environment{"TOKEN": "secret-canary"}
	for name, c := range map[string]struct{ kind, text, want, problem string }{
		"YAML, with the server's own keys": {"registry", "name: mine\nadapter: x\nurl: http://localhost\ntoken: ${env:TOKEN}\n", `{"token":"secret-canary","url":"http://localhost"}`, ""},
		"JSON, with a number as written":   {"auth", `{"audience": "a", "limit": 12345678901234567890}`, `{"limit":12345678901234567890}`, ""},
		"a key of another kind's server":   {"sessionstore", "name: mine\n", `{"name":"mine"}`, ""},
		"another's placeholder":            {"auth", `issuer: ${issuer}`, `{"issuer":"${issuer}"}`, ""},
		"nothing":                          {"auth", "", `{}`, ""},
		"a variable that is not set":       {"auth", "key: ${env:NONE}", "", "NONE is not set"},
		"a list":                           {"auth", "- a", "", "must be a mapping"},
		"a setting given twice":            {"auth", "a: 1\na: 2", "", "set twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "section.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := config.ReadSection(c.kind, path, env)
			switch {
			case c.problem == "" && (err != nil || string(got.JSON()) != c.want):
				t.Errorf("got %s, %v; want %s", got.JSON(), err, c.want)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("got %v; want %q", err, c.problem)
			}
		})
	}
	if _, err := config.ReadSection("auth", filepath.Join(t.TempDir(), "none"), env); err == nil {
		t.Error("a file that does not exist was read")
	}
}

func TestTheStorageIsReadWithoutTheVariablesOfOtherSections(t *testing.T) {
	for text, problem := range map[string]string{
		"apiKey: ${env:NONE}\nstorage: {url: \"postgres://h/db\"}\n":                                               "",
		"models: {providers: {m: {type: openai, apiKey: \"${env:NONE}\"}}}\nstorage: {url: \"postgres://h/db\"}\n": "",
		"storage: {url: \"postgres://u:${env:NONE}@h/db\"}\n":                                                      "storage.url: the environment variable NONE is not set",
		"storge: {url: \"postgres://h/db\"}\n":                                                                     "storge: unknown key",
		"storage: {keyFile: /a, keyCommand: [b]}\n":                                                                "storage.keyCommand: storage.keyFile is also set",
	} {
		file := filepath.Join(t.TempDir(), "ropewalk.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.LoadStorage(config.Options{Path: file, Home: "/home/of/it"})
		switch {
		case problem == "" && (err != nil || c.Storage.URL != "postgres://h/db" || c.Home != "/home/of/it"):
			t.Errorf("%s: %+v, %v", text, c, err)
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem)):
			t.Errorf("%s: got %v, want %q", text, err, problem)
		}
	}
}
