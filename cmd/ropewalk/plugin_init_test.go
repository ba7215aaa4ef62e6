package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestPluginInitWritesAPluginThatBuildsAndPassesItsKit(t *testing.T) {
	for _, kind := range []string{"sessionstore", "auth", "registry", "audit"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScript(t)
			s.run("ropewalk", "plugin", "init", kind, "demo").exits(0, "go build && ropewalk plugin test ./demo")
			s.dir = filepath.Join(s.dir, "demo")
			s.run("go", "build").exits(0)
			s.run("go", "vet", "./...").exits(0)
			s.run("ropewalk", "plugin", "info", "./demo").exits(0, "kind         "+kind, "name         demo")
			s.run("ropewalk", "plugin", "test", "./demo", "--effort", "quick", "--start-timeout", "90s").exits(0, "0 failed")
			s.run("gofmt", "-l", ".").exits(0).silent()
			if n := testLines(t, s.dir); n > 13 {
				t.Errorf("its test has %d lines, want at most 13", n)
			}
		})
	}
}

func TestPluginInitNeedsOnlyTheExecutableAndAGoToolchain(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "init", "sessionstore", "demo").exits(0, "the SDK from the checkout "+testenv.Root(t), "replace")
	s = newScript(t)
	release := sdkRelease(t, s)
	s.run("ropewalk", "plugin", "init", "registry", "demo", "--sdk-version", release).exits(0, "the SDK from the release "+release)
	s.dir = filepath.Join(s.dir, "demo")
	for file, want := range map[string]string{"go.mod": sdkModule + " " + release, ".github/workflows/ci.yaml": "cmd/ropewalk@" + release + " plugin test ./demo"} {
		raw, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil || !strings.Contains(string(raw), want) || strings.Contains(string(raw), "replace") {
			t.Errorf("%s: %v, want %q in\n%s", file, err, want, raw)
		}
	}
	s.run("go", "build").exits(0)
	s.run("go", "test", ".").exits(0)
	s.run("ropewalk", "plugin", "test", "./demo", "--effort", "quick", "--start-timeout", "90s").exits(0, "0 failed")
}

func TestTheTestOfASkeletonWorksWithAnotherMain(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "init", "sessionstore", "demo").exits(0)
	s.dir = filepath.Join(s.dir, "demo")
	main := func(serve string) string {
		return `package main

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

func main() { sessionstore.Serve(` + serve + `) }

// forgetful reports success for a Put without storing anything.
type forgetful struct{ *memory.Store }

func (forgetful) Put(context.Context, sessionstore.Record, time.Duration) error { return nil }
`
	}
	s.write("main.go", main("memory.New()"))
	s.run("go", "test", ".").exits(0)
	s.write("main.go", main("forgetful{memory.New()}"))
	s.run("go", "test", ".").exits(1, "--- FAIL: TestConformance")
}

func (s said) silent() {
	s.t.Helper()
	if s.text != "" {
		s.t.Errorf("%s: said %q", s.line, s.text)
	}
}

// testLines counts the lines of the only test in a skeleton.
func testLines(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "main_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(raw), "func TestConformance(")
	if !found {
		t.Fatal("there is no TestConformance")
	}
	return strings.Count(body, "\n")
}

func TestTheTestOfASkeletonRunsTheKit(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "init", "auth", "demo", "--module", "example.org/x/demo").exits(0)
	s.dir = filepath.Join(s.dir, "demo")
	s.run("go", "test", "-v", ".").exits(0, "TestConformance/every_verdict_on_a_token_is_the_one_that_the_contract_requires", "PASS")
	s.run("go", "list").exits(0, "example.org/x/demo")
}

func TestPluginInitWithoutTheGoToolWritesAPluginThatBuilds(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH="}
	s.run("ropewalk", "plugin", "init", "sessionstore", "demo").exits(0, "is not on your PATH", "go mod tidy && go build")
	s.environ, s.dir = []string{"GOPROXY=off"}, filepath.Join(s.dir, "demo")
	s.run("go", "build").exits(0)
}

func TestPluginInitDoesNotOverwriteAndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "init", "hat", "demo").exits(1, `"hat" is not a kind of plugin`)
	s.run("ropewalk", "plugin", "init", "auth", "../demo").exits(1, "not a valid plugin name")
	s.run("ropewalk", "plugin", "init", "auth", "demo", "--lang", "cobol").exits(1, `"cobol" is not a language`, "[go java python]")
	s.run("ropewalk", "plugin", "init", "auth", "demo", "--lang", "java", "--module", "example.org/demo").exits(1, "--module works only with --lang go")
	s.run("ropewalk", "plugin", "init", "auth", "proto", "--lang", "python").exits(1, "a plugin cannot be called proto")
	s.run("ropewalk", "plugin", "init", "auth", "demo", "--sdk", s.home).exits(1, "is not a checkout")
	s.run("ropewalk", "plugin", "init", "auth", "demo", "--sdk-version", "yesterday").exits(1, "a release with --sdk-version")
	if _, err := os.Stat(filepath.Join(s.dir, "demo")); err == nil {
		t.Error("a plugin that cannot be built should not be written")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "demo", "go.mod")); err == nil {
		t.Error("a rejected init left a module behind")
	}
	s = newScript(t)
	s.run("ropewalk", "plugin", "init", "auth", "demo").exits(0)
	s.run("ropewalk", "plugin", "init", "auth", "demo").exits(1, "is not empty")
}
