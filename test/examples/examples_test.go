package examples

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// patience is how long an interpreter may take to start on a busy machine.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// install runs the first block of commands in an example's README, in the example's directory, and returns that
// directory. It runs them again only if a file that the result depends on has changed. To detect that, it stores a
// digest of those files in the directory into.
func install(t *testing.T, example, into string, dependsOn ...string) string {
	t.Helper()
	root := testenv.Root(t)
	dir := filepath.Join(root, "examples", example)
	if err := os.MkdirAll(filepath.Join(root, ".cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	defer testenv.Lock(t, filepath.Join(root, ".cache", example+".lock"))()
	digest := digestOf(t, dir, append(dependsOn, "README.md", "../../proto")...)
	done := filepath.Join(dir, into, ".installed")
	if before, err := os.ReadFile(done); err == nil && string(before) == digest {
		return dir
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	commands, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("the README of %s has no command block", example)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	sh := exec.CommandContext(ctx, "sh", "-e", "-c", commands)
	// The contracts come from the executable: no example reads this repository's directory proto.
	sh.Dir, sh.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(harness.Binary(t))+":"+os.Getenv("PATH"))
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("the commands in the README of %s: %v\n%s", example, err, out)
	}
	if err := os.WriteFile(done, []byte(digest), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// digestOf returns a digest of files, and of all files in directories.
func digestOf(t *testing.T, dir string, names ...string) string {
	t.Helper()
	hash := sha256.New()
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			_, _ = hash.Write(append([]byte(path), content...))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// plugin returns the configuration for an example's executable.
func plugin(t *testing.T, path, settings string) config.Plugin {
	t.Helper()
	sum, err := pluginhost.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return config.Plugin{Adapter: "example", Path: path, SHA256: sum, Settings: config.NewSettings([]byte(settings))}
}

// newHost returns a plugin host like a server's, and its log.
func newHost(t *testing.T) (*pluginhost.Host, *testkit.Log) {
	t.Helper()
	lines := &testkit.Log{}
	return pluginhost.New(pluginhost.Options{
		Home: t.TempDir(), Env: config.Environment{"PATH": os.Getenv("PATH")},
		Logger:       hclog.New(&hclog.LoggerOptions{Output: lines, JSONFormat: true, Level: hclog.Trace}),
		StartTimeout: patience, CallTimeout: patience, ReplaceWait: patience,
	}), lines
}

// wantPassed checks the report of ropewalk plugin test for a session store: every property either passed or
// does not apply.
func wantPassed(t *testing.T, report string, err error) {
	t.Helper()
	passed := strings.Count(report, "\npass ")
	if err != nil || passed < 16 || !strings.Contains(report, " passed, 0 failed, 0 not judged, ") {
		t.Errorf("plugin test: %v, %d passed\n%s", err, passed, report)
	}
}

// mustHold waits for a log line that contains all of the parts. It waits because a plugin's log arrives through
// a pipe.
func mustHold(t *testing.T, log *testkit.Log, parts ...string) {
	t.Helper()
	if !testkit.Within(patience, func() bool {
		return slices.ContainsFunc(log.Lines(), func(line string) bool { return holds(line, parts) })
	}) {
		t.Errorf("no line contains all of %q:\n%s", parts, log)
	}
}

func holds(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}
