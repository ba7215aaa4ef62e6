package recipes_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// has fails the test, with the description, unless the file contains the text.
func has(t *testing.T, path, text, description string) {
	t.Helper()
	if raw, err := os.ReadFile(filepath.Join(root, path)); err != nil || !strings.Contains(string(raw), text) {
		t.Errorf("%s: %s is missing (%q)", path, description, text)
	}
}

// folders returns the names of the subdirectories of a directory, except the given ones.
func folders(t *testing.T, path string, except ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(except, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// sources returns the text of the Go files below these directories for which keep returns true.
func sources(t *testing.T, keep func(path string) bool, under ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range under {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || !keep(path) {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

// kinds returns the kinds of plugins by the name of their constant.
func kinds(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(Kind\w+)\s+Kind = "(\w+)"`).FindAllStringSubmatch(read(t, "plugins/kind.go"), -1) {
		found[m[1]] = m[2]
	}
	if len(found) < 3 {
		t.Fatalf("plugins/kind.go lists only the kinds %v", found)
	}
	return found
}

func TestEveryEndpointIsTestedAndDocumented(t *testing.T) {
	tests := sources(t, isTest, "core", "test")
	paths := regexp.MustCompile(`(?m)^  (/v1/[^:]*):$`).FindAllStringSubmatch(read(t, "core/httpapi/openapi.yaml"), -1)
	if len(paths) < 40 {
		t.Fatalf("openapi.yaml lists only %d paths", len(paths))
	}
	parameter := regexp.MustCompile(`\{(\w+)\}`)
	for _, m := range paths {
		path := m[1]
		has(t, "docs/api.md", parameter.ReplaceAllString(path, ":$1"), "the promise of an endpoint")
		// In a test a parameter is written out, or is an expression: "/v1/users/"+id.
		written := regexp.MustCompile(parameter.ReplaceAllString(path, "[^?\\s]+") + "[\"`?/ ]|" + parameter.ReplaceAllString(path, "\"[^?\\n]+\"?"))
		if !written.MatchString(tests) {
			t.Errorf("core/httpapi/*_test.go: no test requests %s", path)
		}
	}
}

func TestEveryEventIsPublishedAndDocumented(t *testing.T) {
	core := sources(t, func(path string) bool { return !isTest(path) && filepath.Base(path) != "event.go" }, "core")
	events := regexp.MustCompile(`(?m)^\t(Event\w+)\s+= "([\w.]+)"`).FindAllStringSubmatch(read(t, "core/event.go"), -1)
	if len(events) < 10 {
		t.Fatalf("core/event.go lists only %d events", len(events))
	}
	for _, m := range events {
		constant, name := m[1], m[2]
		if !regexp.MustCompile(`core\.` + constant + `\b`).MatchString(core) {
			t.Errorf("no package publishes core.%s", constant)
		}
		has(t, "core/httpapi/openapi.yaml", name, "an event of GET /v1/events")
		has(t, "docs/api.md", "`"+name+"`", "a row of section 7.2")
		has(t, "cmd/ropewalk/event/names.go", "core."+constant+",", "a line in the help of `ropewalk events`")
		if constant != "EventHeartbeat" { // the console does not show it
			has(t, "web/src/activity/sentences.ts", `case "`+name+`"`, "a sentence for the console")
		}
	}
}

func TestEveryAdapterIsAPluginBinaryAndABuiltInIsDocumentedAndPassesItsKit(t *testing.T) {
	for constant, kind := range kinds(t) {
		for _, name := range folders(t, filepath.Join("plugins", kind), kind+"test", "internal", "testdata") {
			folder := filepath.Join("plugins", kind, name)
			imported := `"github.com/ropewalk/ropewalk/` + folder + `"`
			has(t, "cmd/ropewalk/builtins.go", imported, "the adapter "+name+" of plugins."+constant)
			adapter := regexp.MustCompile(`"([\w-]+)":\s+\{func\(\) plugins\.Plugin \{ return \w+\.Plugin\(` + name + `\.New\(\)\) \}, (\w+)`).FindStringSubmatch(read(t, "cmd/ropewalk/builtins.go"))
			if adapter == nil {
				continue // reported above
			}
			has(t, filepath.Join("cmd", kind+"-"+adapter[1], "main.go"), imported, "the adapter as a plugin binary")
			has(t, "docs/adapters.md", adapter[1], "the adapter and its settings")
			own := sources(t, func(path string) bool { return !isTest(path) }, folder)
			if regexp.MustCompile(`(?m)^type (Settings|Config) struct`).MatchString(own) && adapter[2] == "nil" {
				t.Errorf("cmd/ropewalk/builtins.go: the settings of the adapter %s are missing", name)
			}
			if tests := sources(t, isTest, folder); !strings.Contains(tests, "PassesItsKit") && !strings.Contains(tests, kind+"test.") {
				t.Errorf("%s/*_test.go: no test runs the conformance kit of the kind %s", folder, kind)
			}
		}
	}
}

func TestEveryKindOfPluginIsComplete(t *testing.T) {
	for constant, kind := range kinds(t) {
		has(t, filepath.Join("proto/ropewalk", kind, "v1", kind+".proto"), "service ", "the contract of the kind "+kind)
		for _, file := range []string{"client.go", "server.go", "serve.go", "doc.go"} {
			has(t, filepath.Join("plugins", kind, file), "package "+kind, "the SDK of the kind "+kind)
		}
		if len(folders(t, filepath.Join("plugins", kind), kind+"test", "internal")) == 0 {
			t.Errorf("plugins/%s: the kind has no adapter", kind)
		}
		kit := sources(t, func(path string) bool { return !isTest(path) }, filepath.Join("plugins", kind, kind+"test"))
		if !regexp.MustCompile(`func Properties\(`).MatchString(kit) {
			t.Errorf("plugins/%s/%stest: the kit has no func Properties", kind, kind)
		}
		has(t, "cmd/ropewalk/builtins.go", "plugins."+constant+":", "the built-in adapters of the kind")
		if all := regexp.MustCompile(`(?s)func Kinds\(\).*?\}`).FindString(read(t, "plugins/kind.go")); !strings.Contains(all, constant) {
			t.Errorf("plugins/kind.go: %s is not among Kinds()", constant)
		}
		has(t, "cmd/ropewalk/plugin_kit_"+kind+".go", kind+"test.", "the kit of the kind for plugin test")
		has(t, "cmd/ropewalk/plugin_kits.go", "plugins."+constant+":", "the kind in plugin test")
		has(t, "cmd/ropewalk/plugin_kits.go", kind+"v1.New", "a call to the kind's service")
		has(t, filepath.Join("cmd/ropewalk/skeleton/files/any", kind, "words.tmpl"), "{{define \"usage\"}}", "the kind in plugin init")
		has(t, filepath.Join("cmd/ropewalk/skeleton/files/go", kind, "main.go.tmpl"), kind+".Serve", "the kind in plugin init")
		has(t, filepath.Join("cmd/ropewalk/skeleton/files/python", kind, "src/adapter.py.tmpl"), "kind = \""+kind+"\"", "the kind in plugin init --lang python")
		if kind != "sessionstore" { // it is the example
			has(t, filepath.Join("cmd/ropewalk/skeleton/files/java", kind, "src/main/java/com/example/Adapter.java.tmpl"), "return \""+kind+"\";", "the kind in plugin init --lang java")
		}
		has(t, "core/pluginhost/find.go", "plugins."+constant+"}", "the adapters of the kind that a configuration names")
		has(t, "core/config/schema/schema.go", `case "`+kind+`":`, "the section of the kind in the configuration")
		has(t, "core/server/adapters.go", "NewSet(h."+strings.TrimPrefix(constant, "Kind")+")", "the kind's set, which a reload swaps")
		has(t, "docs/plugins.md", "ropewalk."+kind+".v1", "the kind in the table of contracts")
		if host := sources(t, func(path string) bool { return !isTest(path) }, "core/pluginhost"); !strings.Contains(host, "plugins."+constant) {
			t.Errorf("core/pluginhost: nothing starts plugins of the kind plugins.%s", constant)
		}
	}
}
