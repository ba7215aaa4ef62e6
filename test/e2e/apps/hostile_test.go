//go:build linux

package apps

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// The probes of core/process run as an app on a real server. The server runs as root and as an ordinary user, with its
// state in a file and in PostgreSQL.
func TestAHostileAppOnARealServerGainsNothing(t *testing.T) {
	testenv.NeedsNamespaces(t)
	t.Parallel()
	users := map[string]*syscall.Credential{"the test user": nil}
	if os.Geteuid() == 0 {
		users = map[string]*syscall.Credential{"root": nil, "an ordinary user": {Uid: 65534, Gid: 65534}}
	}
	program := hostileProgram(t)
	for who, user := range users {
		for state, database := range map[string]func() string{
			"a file": func() string { return "" }, "PostgreSQL": func() string { return withPassword(t, harness.Databases.New(t)) },
		} {
			t.Run(who+" with "+state, func(t *testing.T) {
				escapes(t, user, database(), program, "namespaces")
			})
		}
		t.Run(who+" at landlock", func(t *testing.T) {
			escapes(t, user, "", program, "landlock", "a datagram to loopback", "a datagram through a disconnected socket", "all inotify instances")
		})
	}
}

// hostileProgram builds the tests of core/process. They contain the hostile app.
func hostileProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(openDir(t, nil), "hostile")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-o", program, "../../../core/process")
	build.Env = append(os.Environ(), testenv.GoEnviron()...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// openDir creates a directory that every user can read. If user is set, the directory belongs to that user.
func openDir(t *testing.T, user *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hostile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if user != nil {
		if err := os.Chown(dir, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// dbPassword is a password that PostgreSQL never checks, because the test instance trusts everyone who can connect.
const dbPassword = "canary-of-the-database"

func withPassword(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), dbPassword)
	return u.String()
}

// escapes runs the probes at a sandbox level. It skips the probes in except, which the level does not stop.
func escapes(t *testing.T, user *syscall.Credential, database, program, level string, except ...string) {
	allowed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = allowed.Close() }()
	go func() {
		for {
			if _, err := allowed.Accept(); err != nil {
				return
			}
		}
	}()
	dir := openDir(t, user)
	s := harness.Serve(t, func(s *harness.Server) {
		s.Home, s.User, s.Database = filepath.Join(dir, "home"), user, database
		s.Environ = append(s.Environ, "HOME="+dir, "SECRET="+dbPassword)
		s.Program = filepath.Join(dir, "ropewalk")
		copyProgram(t, harness.Binary(t), s.Program)
		harness.Config(fmt.Sprintf("sandbox: {fileSizeMiB: 1, network: [%q], level: %s}\n", allowed.Addr().String(), level))(s)
		if user != nil {
			for _, path := range []string{s.Home, filepath.Join(s.Home, "ropewalk.yaml")} {
				if err := os.Chown(path, int(user.Uid), int(user.Gid)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	s.Install(t, map[string]any{"path": hostileBundle(t, program, "other")})
	bundle := hostileBundle(t, program, "hostile")
	s.Install(t, map[string]any{"path": bundle})
	target := knowledge(t, s, allowed.Addr().String(), bundle)
	result := s.Call(t, "hostile", "attack", map[string]any{"target": target, "except": append(except,
		"a port of the server's network", // this probe needs a service that does not accept connections
		"a file in its own bundle",       // this probe writes to a layer; the test checks the result below
	)})
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Probes  int
		Escaped map[string]string
	}
	if err := json.Unmarshal(raw, &report); err != nil || report.Probes < 100 {
		t.Fatalf("%v: %s", err, raw)
	}
	t.Logf("%d probes", report.Probes)
	for name, got := range report.Escaped {
		t.Errorf("%s: %s", name, got)
	}
	if _, err := os.Stat(filepath.Join(bundle, "planted.js")); !os.IsNotExist(err) {
		t.Errorf("a file in the bundle: %v", err)
	}
	if status := s.Apps(t)["other"].Status; status != "running" {
		t.Errorf("the other app is %s", status)
	}
	hasItsOwnUser(t, s, os.Geteuid() == 0 && user == nil)
}

// hasItsOwnUser checks whether the app's process runs as a user of its own, and whether the API reports this correctly.
func hasItsOwnUser(t *testing.T, s *harness.Server, want bool) {
	t.Helper()
	var details struct{ Sandbox struct{ OwnUser bool } }
	if err := json.Unmarshal([]byte(s.Do(t, "GET", "/v1/apps/hostile", nil).Body), &details); err != nil {
		t.Fatal(err)
	}
	own := false
	for _, p := range s.Processes() {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", p.ID))
		if err != nil || !strings.Contains(p.Command, "hostile-app hostile") || p.Parent == s.Cmd.Process.Pid /* its shim */ {
			continue
		}
		own = info.Sys().(*syscall.Stat_t).Uid >= 0x70000000
	}
	if own != want || details.Sandbox.OwnUser != want {
		t.Errorf("the process has its own user: %v; according to the API: %v; want %v", own, details.Sandbox.OwnUser, want)
	}
}

// An app replaces its directory for temporary files and removes the access rights of its own directories.
func TestAnAppStartsEvenIfItDamagedItsDirectories(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "calc", harness.Plain)})
	data := filepath.Join(s.Home, "apps/calc/data")
	tmp := filepath.Join(data, "tmp")
	for name, spoil := range map[string]func() error{
		"a file":             func() error { return errors.Join(os.RemoveAll(tmp), os.WriteFile(tmp, nil, 0o600)) },
		"a link to nothing":  func() error { return errors.Join(os.RemoveAll(tmp), os.Symlink("/nowhere/at/all", tmp)) },
		"a link to the home": func() error { return errors.Join(os.RemoveAll(tmp), os.Symlink(s.Home, tmp)) },
		"a pipe":             func() error { return errors.Join(os.RemoveAll(tmp), syscall.Mkfifo(tmp, 0o600)) },
		"no rights":          func() error { return os.Chmod(data, 0) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"stop", "start"} {
			if a := s.Do(t, "POST", "/v1/apps/calc/"+command, nil); a.Status != 200 {
				t.Fatalf("%s: %s: %d %s", name, command, a.Status, a.Body)
			}
		}
		s.Call(t, "calc", "echo", map[string]any{"text": name})
		if info, err := os.Lstat(tmp); err != nil || !info.IsDir() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	raw, err := os.ReadFile(from)
	if err := errors.Join(err, os.WriteFile(to, raw, 0o755)); err != nil { //nolint:gosec // an executable file
		t.Fatal(err)
	}
}

// hostileBundle creates a bundle with the program. Every user can read the bundle.
func hostileBundle(t *testing.T, program, name string) string {
	t.Helper()
	dir := openDir(t, nil)
	copyProgram(t, program, filepath.Join(dir, "server"))
	manifest, err := json.Marshal(map[string]any{
		"manifest_version": "0.3", "name": "@e2e/" + name, "version": "1.0.0", "description": "Tries to escape.", "author": map[string]any{"name": "e2e"},
		"server": map[string]any{"type": "binary", "entry_point": "server", "mcp_config": map[string]any{"command": "${__dirname}/server", "args": []string{"__bundle", "hostile-app", name}}},
	})
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o644)); err != nil { //nolint:gosec // an app that runs as another user reads it
		t.Fatal(err)
	}
	return dir
}

// knowledge returns everything about the server that the app needs to attack it.
func knowledge(t *testing.T, s *harness.Server, allowed, bundle string) map[string]any {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := s.Cmd.Process.Pid
	for _, p := range s.Processes() {
		if strings.Contains(p.Command, "hostile-app other") {
			other = p.ID
		}
	}
	known := map[string]any{
		"Home": s.Home, "Config": filepath.Join(s.Home, "ropewalk.yaml"), "Tokens": filepath.Join(s.Home, "token"), "Database": filepath.Join(s.Home, "ropewalk.db"),
		"OtherData": filepath.Join(s.Home, "apps/other/data"), "Plugins": filepath.Join(s.Home, "plugins"), "Bundle": bundle, "Data": filepath.Join(s.Home, "apps/hostile/data"),
		"Server": s.Cmd.Process.Pid, "Other": other, "Control": filepath.Join(s.Home, "control.sock"), "Plugin": "/tmp/plugin", "Abstract": "plugin",
		"TCP": at.Host, "TCPOwn": at.Host, "UDP": at.Host, "Allowed": allowed, "Segment": -1, "Temporary": "/tmp/other", "SharedMemory": "/dev/shm/other",
		"Password": dbPassword,
	}
	if s.Database != "" {
		u, err := url.Parse(s.Database)
		if err != nil {
			t.Fatal(err)
		}
		sockets, err := filepath.Glob("/tmp/ropewalk-pg*/.s.PGSQL." + u.Port())
		if err != nil || len(sockets) != 1 {
			t.Fatalf("%v, %v", sockets, err)
		}
		known["Postgres"], known["PostgresSocket"] = u.Host, sockets[0]
	}
	return known
}
