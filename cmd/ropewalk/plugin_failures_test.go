package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// faulty fails in Configure in the way that its settings specify.
type faulty struct {
	sessionstore.Store
}

type faults struct {
	Fault  string `json:"fault"`
	Number int    `json:"number"`
}

func (*faulty) NewSettings() any { return &faults{} }

func (*faulty) Configure(ctx context.Context, c plugins.Config) error {
	var set faults
	if err := c.Decode(&set); err != nil {
		return err
	}
	switch set.Fault {
	case "panic":
		var none []int
		none[set.Number] = 1
	case "crash":
		fmt.Fprintln(os.Stderr, "fatal: the heap is broken")
		os.Exit(3)
	case "goroutine":
		go func() { panic("the cache of sessions is broken") }()
		<-ctx.Done()
	case "backend":
		return plugins.Unavailable(errors.New("dial tcp 127.0.0.1:1: connection refused"))
	case "wait":
		<-ctx.Done()
		return ctx.Err()
	case "error":
		return errors.New("the sessions table has no owner column")
	}
	return nil
}

// failure is a plugin that cannot be used, and what the last line of the output must contain.
type failure struct {
	name    string
	command string // "" means "config check"
	file    string // the text of the plugin's file; "" means the faulty plugin
	prepare func(t *testing.T, path string)
	section string // settings in addition to the adapter; "" means the path and its checksum
	says    []string
}

func failures() []failure {
	const sh = "#!/bin/sh\n"
	onLine := func(line string) string { return sh + "echo '" + line + "'; sleep 60\n" }
	set := func(settings string) string { return "{path: PATH, sha256: SUM, " + settings + "}" }
	return []failure{
		{name: "not found", section: "{}", says: []string{`there is no built-in adapter "mine"`, "no plugin of that name in ", "known names are memory, postgres, redis"}},
		{name: "a path that does not exist", file: sh, prepare: remove, says: []string{"there is no such file", "correct the path"}},
		{name: "a folder", file: sh, prepare: makeFolder, says: []string{"is not a regular file"}},
		{name: "not executable", file: sh, prepare: mode(0o600), says: []string{"may not be executed", "execute permission"}},
		{name: "wrong architecture", file: "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xf3\x00", says: []string{"is not a program that this machine can execute", "architecture"}},
		{name: "no interpreter", file: "#!/no/such/interpreter\n", says: []string{"the interpreter that its first line names"}},
		{name: "hash changed", file: sh, prepare: func(t *testing.T, path string) { rewrite(t, path, sh+"exit 0\n") }, says: []string{"content does not match its sha256", "put the new sha256 into the configuration"}},
		{name: "no hash", section: "{path: PATH}", file: sh, says: []string{"sha256"}},
		{name: "group-writable file", file: sh, prepare: mode(0o775), says: []string{"is writable by others", "run chmod go-w"}},
		{name: "folder writable by others", file: sh, prepare: openFolder, says: []string{"is writable by others", "run chmod go-w"}},
		{name: "symbolic link", file: sh, prepare: link, says: []string{"is a symbolic link", "specify the file that it points to"}},
		{name: "wrong kind", section: "{path: PATH, sha256: SUM}", file: sh + "exec " + filepath.Join(built, "auth-static") + "\n", says: []string{"of the kind auth", "kind sessionstore"}},
		{name: "exits at once with a message", file: sh + "echo 'libfoo.so.1 is missing' >&2; exit 3\n", says: []string{"exited before it was ready", "status 3", "libfoo.so.1 is missing"}},
		{name: "exits at once without a message", file: sh + "exit 0\n", says: []string{"exited before it was ready", "status 0", "run it by hand"}},
		{name: "killed at once", file: sh + "kill -SEGV $$\n", says: []string{"exited before it was ready", "segmentation fault"}},
		{name: "no handshake", file: sh + "sleep 60\n", section: "{path: PATH, sha256: SUM}\nplugins: {startTimeoutSeconds: 1}", says: []string{"did not respond in time", "plugins.startTimeoutSeconds"}},
		{name: "garbage on standard output", file: onLine("Listening on port 80"), says: []string{"is not the handshake line", "Listening on port 80", "log to standard error"}},
		{name: "another handshake", file: onLine("2|1|unix|/tmp/x|grpc|"), says: []string{"does not begin with 1", "docs/plugins.md"}},
		{name: "another protocol version", file: onLine("1|99|unix|/tmp/x|grpc|"), says: []string{"no protocol version that this server supports", "rebuild it"}},
		{name: "another network", file: onLine("1|1|sctp|/tmp/x|grpc|"), says: []string{"the network in its handshake line is unknown", "unix or tcp"}},
		{name: "net/rpc", file: onLine("1|1|unix|/tmp/x|netrpc|"), says: []string{"does not speak gRPC", "must be grpc"}},
		{name: "an invalid certificate", file: onLine("1|1|unix|/tmp/x|grpc|" + strings.Repeat("bm90IGEgY2VydGlmaWNhdGUK", 4) + "="), says: []string{"certificate in its handshake line cannot be read", "without padding"}},
		{name: "no TLS", file: onLine("1|1|unix|/tmp/nobody-listens-here|grpc|"), says: []string{"/tmp/nobody-listens-here", "with TLS as PLUGIN_CLIENT_CERT requires"}},
		{name: "unknown setting", section: set("falt: x"), says: []string{`sessionStore.falt: is not a setting (did you mean "fault"?)`}},
		{name: "a setting of a wrong type", section: set("number: many"), says: []string{"sessionStore.number: must be a whole number, not a string"}},
		{name: "panics in Configure", command: "serve", section: set("fault: panic"), says: []string{"the plugin panicked", "index out of range"}},
		{name: "crashes in Configure", command: "serve", section: set("fault: crash"), says: []string{"crashed during Configure (exited with status 3)", "fatal: the heap is broken"}},
		{name: "crashes during Configure", command: "serve", section: set("fault: goroutine"), says: []string{"crashed during Configure (exited with status 2)", "panic: the cache of sessions is broken"}},
		{name: "cannot reach its backend", command: "serve", section: set("fault: backend"), says: []string{"its backend cannot be reached", "127.0.0.1:1: connection refused", "check its address"}},
		{name: "too slow in Configure", command: "serve", section: set("fault: wait") + "\nplugins: {startTimeoutSeconds: 15}", says: []string{"did not accept its settings within 15s", "plugins.startTimeoutSeconds"}},
		{name: "fails in Configure", command: "serve", section: set("fault: error"), says: []string{"fails in Configure", "has no owner column", "this is a bug in the plugin"}},
	}
}

func remove(t *testing.T, path string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func makeFolder(t *testing.T, path string) {
	remove(t, path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func mode(mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func openFolder(t *testing.T, path string) { mode(0o777)(t, filepath.Dir(path)) }

func rewrite(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, path string) {
	if err := errors.Join(os.Rename(path, path+"-1"), os.Symlink(path+"-1", path)); err != nil {
		t.Fatal(err)
	}
}

func TestTheLastLineSaysWhyAPluginCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	faultyPlugin := liar(t, s.dir, "sessionstore-faulty")
	for _, f := range failures() {
		t.Run(f.name, func(t *testing.T) {
			path := faultyPlugin
			if f.file != "" {
				dir := t.TempDir()
				if err := os.Chmod(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				path = filepath.Join(dir, "store")
				rewrite(t, path, f.file)
			}
			sum, err := pluginhost.HashFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if f.prepare != nil {
				f.prepare(t, path)
			}
			section := f.section
			if section == "" {
				section = "{path: PATH, sha256: SUM}"
			}
			section = strings.NewReplacer("{", "{adapter: mine, ", "PATH", path, "SUM", sum).Replace(strings.SplitN(section, "\n", 2)[0]) +
				strings.TrimPrefix(section, strings.SplitN(section, "\n", 2)[0])
			file := s.write("failure.yaml", "sessionStore: "+section+"\n")
			line := []string{"ropewalk", "config", "check", "--config", file}
			if f.command == "serve" {
				line = []string{"ropewalk", "serve", "--port", "0", "--config", file}
			}
			own := &script{t: t, dir: s.dir, home: s.home}
			wantLastLine(t, own.run(line...).exits(1), f.says)
		})
	}
}

// wantLastLine fails the test unless the last line that is not empty contains all of the strings.
func wantLastLine(t *testing.T, s said, says []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.text), "\n")
	last := lines[len(lines)-1]
	for _, want := range says {
		if !strings.Contains(last, want) {
			t.Errorf("the last line should contain %q:\n%s", want, last)
		}
	}
	t.Log(last)
}
