package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

func TestTheEffectiveSettingsNameTheirSourceAndHideSecrets(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "ropewalk.yaml")
	text := `http: {port: 8080}
log:
  level: ${env:LEVEL}
storage: {url: "postgres://u:canary1@db/x"}
apps:
  notes: {path: /srv/notes, env: {ANYTHING: canary2}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	port := 9090
	env := config.Environment{"LEVEL": "debug", "SERVICE_API_KEY": "canary3-and-more-of-it"}
	c, err := config.Load(config.Options{Home: home, Environment: env, Flags: config.Flags{Port: &port}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range c.Effective() {
		got[v.Path] = fmt.Sprint(v.Value) + " from " + strings.ReplaceAll(v.Source, home, "<home>")
	}
	for path, want := range map[string]string{
		"http.port":               "9090 from flag --port",
		"http.host":               "127.0.0.1 from default",
		"log.level":               "[redacted] from <home>/ropewalk.yaml:3",
		"apiKey":                  "[redacted] from environment SERVICE_API_KEY",
		"storage.url":             "postgres://u:xxxxx@db/x from <home>/ropewalk.yaml:4",
		"apps.notes.env.ANYTHING": "[redacted] from <home>/ropewalk.yaml:6",
		"apps.notes.path":         "/srv/notes from <home>/ropewalk.yaml:6",
	} {
		if got[path] != want {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
	}
	if strings.Contains(fmt.Sprint(got), "canary") {
		t.Errorf("a secret is shown: %v", got)
	}
}

func TestAValueWhoseVariableIsNotSetIsShownAsUnset(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ropewalk.yaml")
	inspect := func(text string) (*config.Config, config.Problems, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Inspect(config.Options{Path: file, Home: "/home/of/it", Environment: config.Environment{"LEVEL": "debug"}})
	}
	c, unset, err := inspect("apiKey: ${env:KEY}\nhttp: {port: \"${env:PORT}\"}\nlog: {level: \"${env:LEVEL}\"}\nstorage: {url: \"postgres://u:${env:PASSWORD}@db/x\"}\n" +
		"models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \"http://m\", apiKey: \"${env:MODEL}\"}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, v := range c.Effective() {
		shown[v.Path] += fmt.Sprint(v.Value)
	}
	for path, want := range map[string]string{
		"apiKey": "[unset]", "http.port": "[unset]", "storage.url": "[unset]", "models.providers.m.apiKey": "[unset]", "log.level": "[redacted]", "http.host": "127.0.0.1",
	} {
		if shown[path] != want {
			t.Errorf("%s is shown as %q, want %q", path, shown[path], want)
		}
	}
	var variables []string
	for _, p := range unset {
		variables = append(variables, p.Variable)
	}
	if strings.Join(variables, " ") != "KEY PORT PASSWORD MODEL" {
		t.Errorf("unset are %v", unset)
	}
	if _, _, err := inspect("apiKey: ${env:KEY}\nhtpt: {port: 1}\n"); err == nil || !strings.Contains(err.Error(), "htpt") || !strings.Contains(err.Error(), "KEY is not set") {
		t.Errorf("another mistake in addition to a variable: %v", err)
	}
	if _, _, err := config.Inspect(config.Options{Path: file + ".absent", Home: "/home/of/it"}); err == nil {
		t.Error("a file that does not exist was read")
	}
}
