package control_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type commands struct{ err error }

func (c commands) Reload(context.Context) (control.Reloaded, error) {
	return control.Reloaded{Changed: []string{"auth"}, Restart: []string{"http"}}, c.err
}

func (c commands) Plan(ctx context.Context) (control.Plan, error) {
	done, err := c.Reload(ctx)
	return control.Plan{Reloaded: done, People: &core.Forecast{Known: 1, New: []core.KnownUser{{User: core.User{ID: "usr_a"}}}}}, err
}

func (commands) Plugins() []pluginhost.Status {
	return []pluginhost.Status{{Kind: "auth", Name: "oidc", PID: 7}}
}

func (commands) Attach(ctx context.Context, a control.Attach, attached func(control.Attached)) error {
	if a.Kind == "unknown" {
		return errors.New("no such plugin")
	}
	attached(control.Attached{Name: a.Name, Version: a.Socket})
	if a.Name == "ends" {
		return errors.New("detached: it exited")
	}
	<-ctx.Done()
	return nil
}

func (commands) Apps() []control.App {
	return []control.App{{Workspace: "ws_a", Name: "notes", Status: "dead", LastErr: "it is gone"}}
}

func (commands) Status() control.Status {
	return control.Status{URL: "http://127.0.0.1:1", Workspace: "ws_a", Version: "1", PID: 7, Dev: true}
}

func (commands) OwnerToken() core.Secret { return "the owner's token" }

func (commands) Readiness() []control.Check {
	return []control.Check{{Name: "store"}, {Name: "database", Err: "no route to host"}}
}

func (commands) LogLevels(change map[string]string) (map[string]string, error) {
	if change["apps"] == "loud" {
		return nil, errors.New("no such level")
	}
	return map[string]string{"default": "info", "apps": change["apps"]}, nil
}

func TestLogLevelsAreChangedAndProfilesAreWritten(t *testing.T) {
	home := t.TempDir()
	s, err := control.Listen(t.Context(), home, commands{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	c := control.Dial(home)
	if all, err := c.LogLevels(t.Context(), map[string]string{"apps": "debug"}); err != nil || all["apps"] != "debug" || all["default"] != "info" {
		t.Errorf("%v %v", all, err)
	}
	if _, err := c.LogLevels(t.Context(), map[string]string{"apps": "loud"}); err == nil || err.Error() != "no such level" {
		t.Errorf("an unknown level: %v", err)
	}
	for _, name := range []string{"heap", "goroutine", "cpu"} {
		var written bytes.Buffer
		if err := c.Profile(t.Context(), name, time.Second, &written); err != nil || !bytes.HasPrefix(written.Bytes(), []byte{0x1f, 0x8b}) {
			t.Errorf("%s: %d bytes, %v", name, written.Len(), err)
		}
	}
	if err := c.Profile(t.Context(), "hat", time.Second, io.Discard); err == nil || !strings.Contains(err.Error(), "goroutine") {
		t.Errorf("an unknown profile: %v", err)
	}
}

func TestTheStatusContainsTheServersAddress(t *testing.T) {
	home := t.TempDir()
	s, err := control.Listen(t.Context(), home, commands{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	if got, err := control.Dial(home).Status(t.Context()); err != nil || !reflect.DeepEqual(got, (commands{}).Status()) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAnOperatorsCommandIsAnsweredByTheServer(t *testing.T) {
	homes := map[string]string{
		"a short home": t.TempDir(),
		"a home whose path is too long for a socket": filepath.Join(t.TempDir(), strings.Repeat("long/", 30)),
	}
	for name, home := range homes {
		t.Run(name, func(t *testing.T) {
			s, err := control.Listen(t.Context(), home, commands{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close(context.Background()) })
			c := control.Dial(home)
			if apps, err := c.Apps(t.Context()); err != nil || !slices.Equal(apps, (commands{}).Apps()) {
				t.Errorf("the apps are %+v, %v", apps, err)
			}
			done, err := c.Reload(t.Context())
			if err != nil || !slices.Equal(done.Changed, []string{"auth"}) || !slices.Equal(done.Restart, []string{"http"}) {
				t.Errorf("reload returned %+v, %v", done, err)
			}
			plan, err := c.Plan(t.Context())
			if want, _ := (commands{}).Plan(t.Context()); err != nil || !reflect.DeepEqual(plan, want) {
				t.Errorf("plan returned %+v, %v", plan, err)
			}
			checks, err := c.Readiness(t.Context())
			if err != nil || !slices.Equal(checks, (commands{}).Readiness()) {
				t.Errorf("readiness returned %+v, %v", checks, err)
			}
			plugins, err := c.Plugins(t.Context())
			if err != nil || len(plugins) != 1 || plugins[0].PID != 7 {
				t.Errorf("plugins returned %+v, %v", plugins, err)
			}
		})
	}
}

func TestARejectedReloadReturnsTheReason(t *testing.T) {
	home := t.TempDir()
	s, err := control.Listen(t.Context(), home, commands{err: errors.New("auth.issuer: is missing")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	if _, err := control.Dial(home).Reload(t.Context()); err == nil || err.Error() != "auth.issuer: is missing" {
		t.Errorf("the error should be the server's reason, got %v", err)
	}
}

func TestTheErrorSaysThatNoServerIsRunning(t *testing.T) {
	home := t.TempDir()
	if _, err := control.Dial(home).Plugins(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("before the first start: %v", err)
	}
	s, err := control.Listen(t.Context(), home, commands{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(home).Plugins(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("after a stop: %v", err)
	}
}

func TestOnlyTheServersOwnUserMayOpenTheSocket(t *testing.T) {
	home := t.TempDir()
	s, err := control.Listen(t.Context(), home, commands{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	info, err := os.Stat(filepath.Join(home, "control.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
}

func TestTheSocketIsInTheHomeEvenIfItsPathIsLong(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	s, err := control.Listen(t.Context(), home, commands{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(home).Plugins(t.Context()); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(filepath.Join(home, "control.sock")); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("no socket in the home: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(home, "control.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket was not removed: %v", err)
	}
}

func TestAHomeThatOthersCanChangeHasNoSocket(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Listen(t.Context(), home, commands{}); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("a server listens in a home that others can change: %v", err)
	}
	l, err := net.Listen("unix", filepath.Join(home, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := control.Dial(home).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("a command trusted the socket: %v", err)
	}
}

// impostorVariable is the environment variable with the socket path. It is set in the process that runs this test as
// another user and listens there.
const impostorVariable = "CONTROL_TEST_IMPOSTOR"

func TestAnotherUsersSocketGetsNoCommand(t *testing.T) {
	if path := os.Getenv(impostorVariable); path != "" {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		fmt.Println("listening")
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1)
		n, _ := conn.Read(got)
		fmt.Printf("read %d bytes\n", n)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	home, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(home, "test"), self, 0o755), os.Chmod(home, 0o777)); err != nil { //nolint:gosec // for another user
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(home, "test"), "-test.run", t.Name())
	cmd.Env, cmd.Dir = []string{impostorVariable + "=" + filepath.Join(home, "control.sock")}, home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "listening" {
		t.Fatal(lines.Text())
	}
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(home).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "the user 65534, who listens") {
		t.Errorf("a command trusted the socket: %v", err)
	}
	if !lines.Scan() || lines.Text() != "read 0 bytes" {
		t.Error(lines.Text())
	}
	for lines.Scan() { // Wait closes it, so read to the end first
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAnAttachmentLastsUntilEitherSideDisconnects(t *testing.T) {
	home := t.TempDir()
	s, err := control.Listen(t.Context(), home, commands{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	c := control.Dial(home)
	never := func(control.Attached) { t.Error("it was attached") }
	if err := c.Attach(t.Context(), control.Attach{Kind: "unknown"}, never); err == nil || err.Error() != "no such plugin" {
		t.Errorf("an unknown plugin: %v", err)
	}
	var got control.Attached
	if err := c.Attach(t.Context(), control.Attach{Name: "ends", Socket: "v1"}, func(a control.Attached) { got = a }); err == nil || err.Error() != "detached: it exited" {
		t.Errorf("an attachment that ended by itself: %v", err)
	}
	if got != (control.Attached{Name: "ends", Version: "v1"}) {
		t.Errorf("attached: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := c.Attach(ctx, control.Attach{}, func(control.Attached) { cancel() }); err != nil {
		t.Errorf("an attachment that the operator ended: %v", err)
	}
	closed := make(chan error, 1)
	err = c.Attach(t.Context(), control.Attach{}, func(control.Attached) { go func() { closed <- s.Close(t.Context()) }() })
	if err == nil || !strings.HasPrefix(err.Error(), "the server stopped") {
		t.Errorf("an attachment to a server that stops: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
