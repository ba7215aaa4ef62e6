package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config/schema"
)

func TestEachSectionSaysWhetherAReloadAppliesIt(t *testing.T) {
	s, err := schema.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{"home": true} // home is a flag
	for _, name := range schema.Known(s.At("#")) {
		sections[name] = true
	}
	named := map[string]bool{}
	for f := range reflect.TypeFor[Config]().Fields() {
		section, how := f.Tag.Get("section"), f.Tag.Get("reload")
		if f.Tag == "" && (!f.IsExported() || slices.Contains([]string{"File", "Environment", "Warnings"}, f.Name)) {
			continue
		}
		if !sections[section] || how != "applied" && how != "restart" {
			t.Errorf("the tags of %s are %q", f.Name, f.Tag)
		}
		named[section] = true
	}
	for section := range sections {
		if !named[section] {
			t.Errorf("no field has the section %s", section)
		}
	}
}

func TestAReloadReportsTheChangedSectionsAndThoseThatNeedARestart(t *testing.T) {
	base := "apiKey: a-good-long-key-1234\nauth: {adapter: x, issuer: a}\nregistries: [{name: a, adapter: b, folder: c}]\napps: {a: {path: p, env: {T: u}}}\naudit: {sinks: [file]}\n"
	cases := []struct{ name, file, applied, restart string }{
		{"nothing, only written differently", strings.ReplaceAll(base, ", ", ",   ") + "log:\n", "", ""},
		{"the key", strings.Replace(base, "1234", "5678", 1), "", "apiKey"},
		{"an adapter's own setting", strings.Replace(base, "issuer: a", "issuer: b", 1), "auth", ""},
		{"a registry's own setting", strings.Replace(base, "folder: c", "folder: d", 1), "registries", ""},
		{"a secret of an app", strings.Replace(base, "T: u", "T: v", 1), "apps", ""},
		{"the level of the log", base + "log: {level: warn}\n", "log", ""},
		{"the format of the log", base + "log: {format: json}\n", "", "log"},
		{"level, format and access lines", base + "log: {level: warn, format: json, access: true}\n", "log", "log"},
		{"another sink", strings.Replace(base, "[file]", "[file, {adapter: http, url: 'http://a'}]", 1), "audit", ""},
		{"another sink and the arguments", strings.Replace(base, "sinks: [file]", "sinks: [http], arguments: true", 1), "audit", "audit"},
		{"no sink, which ends the audit", strings.Replace(base, "audit: {sinks: [file]}\n", "", 1), "", "audit"},
		{
			"everything else", base + "http: {port: 1}\nsessionStore: redis\nstorage: {url: 'postgres://u:p@h/d'}\nfeatures: {delegation: false}\nmcp: {maxSessions: 3}\n" +
				"chat: {elicitationTimeoutSeconds: 7}\nmodels: {maxOutputTokens: 5}\nskills: {directories: [a]}\nlimits: {calls: 3}\nsandbox: {cpu: 2}\ntools: {pin: warn}\n" +
				"install: {allow: ['npm:*']}\nplugins: {passEnv: [A]}\n",
			"sessionStore features chat models install", "http storage mcp skills tools limits sandbox plugins",
		},
		{"origins", base + "http: {allowedOrigins: ['https://a']}\n", "", "http"},
	}
	before := mustLoad(t, base, nil)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			next := mustLoad(t, c.file, nil)
			next.Home, next.Apps = before.Home, rehome(next, before.Home)
			merged, changes := Reload(before, next)
			equal(t, "applied", strings.Join(changes.Applied, " "), c.applied)
			equal(t, "needs a restart", strings.Join(changes.Restart, " "), c.restart)
			_, again := Reload(merged, next)
			equal(t, "at the next reload", fmt.Sprint(again), fmt.Sprint(Changes{Restart: changes.Restart}))
		})
	}
	other := *before
	other.Home = "/elsewhere"
	merged, changes := Reload(before, &other)
	equal(t, "home", changes, Changes{Restart: []string{"home"}})
	equal(t, "the home in use", merged.Home, before.Home)
}

func TestAReloadDoesNotTurnAuthenticationOnOrOff(t *testing.T) {
	dev, authenticated := mustLoad(t, "", nil), mustLoad(t, "auth: {adapter: x}", nil)
	for name, c := range map[string][2]*Config{"on": {dev, authenticated}, "off": {authenticated, dev}} {
		merged, changes := Reload(c[0], c[1])
		if !slices.Contains(changes.Restart, "auth") || merged.Dev() != c[0].Dev() {
			t.Errorf("%s: %+v, dev mode %v", name, changes, merged.Dev())
		}
	}
}

// rehome moves the apps' paths from one test's home to another's.
func rehome(c *Config, home string) map[string]App {
	apps := maps.Clone(c.Apps)
	for name, app := range apps {
		app.Source.Ref = home + "/p"
		apps[name] = app
	}
	return apps
}
