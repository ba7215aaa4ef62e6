package core_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ropewalk/ropewalk/"

// A rule keeps the named packages out of every package it covers but the listed doors.
type rule struct {
	because string
	covers  []string // path prefixes inside the module; "" is everything
	never   []string // import paths, or prefixes of them that end in /
	but     []string // packages inside the module that may
	tests   bool     // whether test files are held to it too
}

var rules = []rule{
	{
		because: "plugins is a treaty that third parties import: it knows nothing of the server",
		covers:  []string{"plugins", "proto"}, never: []string{module + "core", module + "core/", module + "cmd/"}, tests: true,
	},
	{
		because: "core is the domain: standard library only, so that every room can import it",
		covers:  []string{"core"}, never: []string{"github.com/", "golang.org/", "google.golang.org/", "modernc.org/"},
		but: []string{"core/*"},
	},
	{
		because: "Fiber is for the packages that answer HTTP: the API, the MCP endpoint, the console, and the streams they share",
		covers:  []string{""}, never: []string{"github.com/gofiber/fiber/v2", "github.com/gofiber/fiber/v2/"},
		but: []string{"core/httpapi", "core/mcphttp", "core/console", "core/stream"},
	},
	{
		because: "go-plugin has two doors: the SDK's side and the host's",
		covers:  []string{""}, never: []string{"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-plugin/"},
		but: []string{"plugins/host", "plugins/server", "core/pluginhost"},
	},
	{
		because: "the MCP SDK speaks to bundles in link and to clients in mcphttp; the sample is a bundle itself",
		covers:  []string{"core", "plugins", "cmd/ropewalk"}, never: []string{"github.com/modelcontextprotocol/go-sdk/"},
		but: []string{"core/link", "core/mcphttp", "cmd/ropewalk/sample"},
	},
	{
		because: "the benchmark's load must cost little, so that the figures are the servers': only the rivals are made of the SDK",
		covers:  []string{"cmd/ropewalk-bench"}, never: []string{"github.com/modelcontextprotocol/go-sdk/"},
		but: []string{"cmd/ropewalk-bench/rival"},
	},
	{
		because: "tokens are judged by auth adapters only",
		covers:  []string{""}, never: []string{"github.com/lestrrat-go/jwx/v2/"}, but: []string{"plugins/auth/*"},
	},
	{
		because: "each model vendor's SDK has one door",
		covers:  []string{""}, never: []string{"github.com/anthropics/anthropic-sdk-go", "github.com/anthropics/anthropic-sdk-go/"},
		but: []string{"core/chat/model/anthropic"},
	},
	{
		because: "each model vendor's SDK has one door",
		covers:  []string{""}, never: []string{"github.com/openai/openai-go/v3", "github.com/openai/openai-go/v3/"},
		but: []string{"core/chat/model/openai"},
	},
	{
		because: "SQL has one door in the server; the postgres session store is a plugin with its own",
		covers:  []string{""}, never: []string{"database/sql", "modernc.org/sqlite", "github.com/pressly/goose/v3", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/"},
		but: []string{"core/store", "plugins/sessionstore/postgres"},
	},
	{
		because: "processes are started in one place, which sees to it that they also end",
		covers:  []string{"core"}, never: []string{"os/exec"},
		but: []string{"core/process", "core/pluginhost"}, // go-plugin hands the environment over in an exec.Cmd; none is run
	},
	{
		because: "nothing knows the wiring but the command that runs it",
		covers:  []string{"core", "plugins"}, never: []string{module + "core/server"}, but: []string{"core/server"}, tests: true,
	},
	{
		because: "a door reaches bundles through tools and apps only",
		covers:  []string{"core/httpapi"}, never: []string{module + "core/process", module + "core/bundle", module + "core/store", module + "core/pluginhost"},
	},
	{
		because: "a door reaches bundles through tools and apps only",
		covers:  []string{"core/mcphttp"}, never: []string{module + "core/process", module + "core/bundle", module + "core/store", module + "core/pluginhost", module + "core/httpapi"},
	},
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestNoRoomImportsWhatItMustNot(t *testing.T) {
	for _, p := range listPackages(t) {
		inside := strings.TrimPrefix(p.ImportPath, module)
		for _, r := range rules {
			if !covered(inside, r.covers) || allowed(inside, r.but) {
				continue
			}
			imports := p.Imports
			if r.tests {
				imports = slices.Concat(imports, p.TestImports, p.XTestImports)
			}
			for _, i := range imports {
				if matches(i, r.never) {
					t.Errorf("%s imports %s, but %s", inside, i, r.because)
				}
			}
		}
	}
}

func TestSiblingsUnderOneKindOfPluginNeverMeet(t *testing.T) {
	for _, p := range listPackages(t) {
		kind, sibling := pluginSibling(p.ImportPath)
		if sibling == "" {
			continue
		}
		for _, i := range p.Imports {
			if k, s := pluginSibling(i); s != "" && k == kind && s != sibling {
				t.Errorf("plugins/%s/%s imports its sibling %s: an adapter that needs another one is not an adapter", kind, sibling, s)
			}
		}
	}
}

// pluginSibling returns the kind and the adapter of a package, "" when it is not an adapter. The
// conformance kits and what a kind's internal folder holds are shared by design.
func pluginSibling(path string) (kind, sibling string) {
	rest, ok := strings.CutPrefix(path, module+"plugins/")
	if !ok {
		return "", ""
	}
	kind, sibling, _ = strings.Cut(rest, "/")
	if strings.HasSuffix(sibling, "test") || strings.HasPrefix(sibling, "internal/") {
		return kind, ""
	}
	return kind, sibling
}

func covered(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return p == "" || path == p || strings.HasPrefix(path, p+"/")
	})
}

func allowed(path string, doors []string) bool {
	return slices.ContainsFunc(doors, func(d string) bool {
		if prefix, ok := strings.CutSuffix(d, "*"); ok {
			return strings.HasPrefix(path, prefix)
		}
		return path == d
	})
}

func matches(path string, never []string) bool {
	return slices.ContainsFunc(never, func(n string) bool {
		return path == n || strings.HasSuffix(n, "/") && strings.HasPrefix(path, n)
	})
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(out); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d packages were found: the rules were not really checked", len(all))
	}
	return all
}
