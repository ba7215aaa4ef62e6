package core_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ropewalk/ropewalk/"

// rule forbids imports in every package that it covers, except those listed in but.
type rule struct {
	because string
	covers  []string // path prefixes inside the module; "" is everything
	never   []string // import paths, or prefixes of them that end in /
	but     []string // packages inside the module that are exempt; a trailing * matches any suffix
	tests   bool     // whether the rule also applies to test files
}

var rules = []rule{
	{
		because: "third parties import plugins, which must not depend on the server",
		covers:  []string{"plugins", "proto"}, never: []string{module + "core", module + "core/", module + "cmd/"}, tests: true,
	},
	{
		because: "core holds the domain types: only the standard library, so that every package can import it",
		covers:  []string{"core"}, never: []string{"github.com/", "golang.org/", "google.golang.org/", "modernc.org/"},
		but: []string{"core/*"},
	},
	{
		because: "Fiber is used by the packages that serve HTTP, and by what they share",
		covers:  []string{""}, never: []string{"github.com/gofiber/fiber/v2", "github.com/gofiber/fiber/v2/"},
		but: []string{"core/httpapi", "core/httpapi/*", "core/mcphttp", "core/stream", "core/webguard", "core/console", "core/apidocs"},
	},
	{
		because: "go-plugin is used by the plugin SDK and by the host",
		covers:  []string{""}, never: []string{"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-plugin/"},
		but: []string{"plugins/host", "plugins/server", "plugins/plugintest", "core/pluginhost"},
	},
	{
		because: "the MCP SDK connects to bundles in link and to clients in mcphttp; the sample is a bundle itself",
		covers:  []string{"core", "plugins", "cmd/ropewalk"}, never: []string{"github.com/modelcontextprotocol/go-sdk/"},
		but: []string{"core/link", "core/link/*", "core/mcphttp", "cmd/ropewalk/sample"},
	},
	{
		because: "the load generator must be cheap, so that the figures are the servers': only the rivals use the SDK",
		covers:  []string{"bench"}, never: []string{"github.com/modelcontextprotocol/go-sdk/"},
		but: []string{"bench/rival"},
	},
	{
		because: "package tracing owns OpenTelemetry; otlptest is a collector for tests",
		covers:  []string{""}, never: []string{"go.opentelemetry.io/"}, but: []string{"core/tracing", "internal/otlptest"}, tests: true,
	},
	{
		because: "only auth adapters verify tokens",
		covers:  []string{""}, never: []string{"github.com/lestrrat-go/jwx/v2/"}, but: []string{"plugins/auth/*"},
	},
	{
		because: "the SDKs of model vendors are a large part of an executable for one request each: packages openai and anthropic speak the wire themselves",
		covers:  []string{""}, never: []string{
			"github.com/openai/openai-go/v3", "github.com/openai/openai-go/v3/", "github.com/anthropics/anthropic-sdk-go", "github.com/anthropics/anthropic-sdk-go/",
		},
	},
	{
		because: "SQL is used by the store; the postgres session store is a plugin with its own database",
		covers:  []string{""}, never: []string{"database/sql", "modernc.org/sqlite", "github.com/pressly/goose/v3", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/"},
		but: []string{"core/store", "core/store/*", "plugins/sessionstore/postgres"},
	},
	{
		because: "processes are started by package process, which also makes sure that they end",
		covers:  []string{"core"}, never: []string{"os/exec"},
		but: []string{"core/process", "core/process/*", "core/pluginhost"}, // go-plugin passes the environment in an exec.Cmd that is not run
	},
	{
		because: "only the command imports the wiring",
		covers:  []string{"core", "plugins", "internal"}, never: []string{module + "core/server"}, but: []string{"core/server"}, tests: true,
	},
	{
		because: "the HTTP packages reach bundles through tools and apps only",
		covers:  []string{"core/httpapi"}, never: []string{module + "core/process", module + "core/bundle", module + "core/store", module + "core/pluginhost", module + "core/mcphttp"},
	},
	{
		because: "the HTTP packages reach bundles through tools and apps only",
		covers:  []string{"core/mcphttp"}, never: []string{module + "core/process", module + "core/bundle", module + "core/store", module + "core/pluginhost", module + "core/httpapi"},
	},
	{
		because: "what both HTTP packages share knows neither of them, and no app",
		covers:  []string{"core/webguard", "core/stream"}, never: []string{module + "core/httpapi", module + "core/mcphttp", module + "core/apps", module + "core/tools"},
	},
}

type pkg struct {
	ImportPath     string
	GoFiles        []string
	IgnoredGoFiles []string // files for other platforms and build tags
	Imports        []string
	TestImports    []string
	XTestImports   []string
}

func TestPackagesImportOnlyWhatTheRulesAllow(t *testing.T) {
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

func TestAdaptersOfOneKindDoNotImportEachOther(t *testing.T) {
	for _, p := range listPackages(t) {
		kind, sibling := pluginSibling(p.ImportPath)
		if sibling == "" {
			continue
		}
		for _, i := range p.Imports {
			if k, s := pluginSibling(i); s != "" && k == kind && s != sibling {
				t.Errorf("plugins/%s/%s imports another adapter of its kind, %s", kind, sibling, s)
			}
		}
	}
}

// pluginSibling returns the kind and the adapter of a package, or "" if it is not an adapter. All adapters of
// a kind share its conformance kit and its internal directory.
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

func allowed(path string, exceptions []string) bool {
	return slices.ContainsFunc(exceptions, func(d string) bool {
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

// listPackages returns the packages of the server and of the load generator, which is a separate module.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	var all []pkg
	for _, dir := range []string{"..", filepath.Join("..", "bench")} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,GoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports", "./...")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", dir, err)
		}
		before := len(all)
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		if len(all)-before < 3 {
			t.Fatalf("only %d packages were found in %s: the rules were not really checked", len(all)-before, dir)
		}
	}
	return all
}
