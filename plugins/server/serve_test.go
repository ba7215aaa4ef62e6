package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	pluginhost "github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// asPlugin makes the test binary act as a plugin, like an author's main function.
const asPlugin = "ROPEWALK_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		sessionstore.Serve(&diary{Store: memory.New()})
		return
	}
	os.Exit(m.Run())
}

// diary is a memory store with every optional capability. It records in its data directory that it was closed.
type diary struct {
	*memory.Store
	log      hclog.Logger
	settings diarySettings
	dir      string
}

type diarySettings struct {
	Note string `json:"note"`
}

func (*diary) Name() string                    { return "diary" }
func (*diary) Version() string                 { return "1.2.3" }
func (d *diary) UseLogger(l hclog.Logger)      { d.log = l }
func (d *diary) closedFile() string            { return filepath.Join(d.dir, "closed") }
func (d *diary) Close() error                  { return os.WriteFile(d.closedFile(), nil, 0o600) }
func (d *diary) decode(c plugins.Config) error { return c.Decode(&d.settings) }

func (*diary) Validate(_ context.Context, c plugins.Config) error {
	return (&diary{}).decode(c)
}

func (d *diary) Configure(_ context.Context, c plugins.Config) error {
	if err := d.decode(c); err != nil {
		return err
	}
	d.dir = c.DataDir
	d.log.Named("diary").Warn("the diary is open", "note", d.settings.Note, "pages", 42)
	return nil
}

func (d *diary) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if id == "panic" {
		panic("the page is torn")
	}
	return d.Store.Get(ctx, id)
}

// hostPlugin is the host's side of a go-plugin connection.
type hostPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (hostPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return nil }

func (hostPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func host(t *testing.T, kind plugins.Kind, wire int, log *testkit.Log) *goplugin.Client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{asPlugin + "=1", "TMPDIR=" + os.TempDir()}
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  pluginhost.Handshake(kind),
		VersionedPlugins: map[int]goplugin.PluginSet{wire: {string(kind): hostPlugin{}}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Cmd:              cmd,
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     time.Minute,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: log, JSONFormat: true, Level: hclog.Debug}),
	})
	t.Cleanup(client.Kill)
	return client
}

func dispense(t *testing.T, client *goplugin.Client, kind plugins.Kind) *grpc.ClientConn {
	t.Helper()
	protocol, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := protocol.Dispense(string(kind))
	if err != nil {
		t.Fatal(err)
	}
	return raw.(*grpc.ClientConn)
}

func TestServeIsAllThatMainNeeds(t *testing.T) {
	log := &testkit.Log{}
	client := host(t, plugins.KindSessionStore, 1, log)
	conn := dispense(t, client, plugins.KindSessionStore)
	control, store := pluginhost.NewControl(conn), sessionstore.Client(conn)

	info, err := control.Info(t.Context())
	if err != nil || info.Name != "diary" || info.Version != "1.2.3" || info.Kind != plugins.KindSessionStore ||
		!slices.Equal(info.ProtocolVersions, []int{1}) || !slices.Equal(info.Capabilities, []string{plugins.CapabilityConfigure, plugins.CapabilityValidate}) {
		t.Errorf("info is %+v, %v", info, err)
	}

	if err := store.Put(t.Context(), sessionstore.Record{ID: "one"}, time.Minute); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Errorf("a call before Configure: %v", err)
	}
	wrong := plugins.Config{JSON: json.RawMessage(`{"notes": "x", "note": 5}`)}
	want := []string{`notes: is not a setting (did you mean "note"?)`, "note: must be a string, not a number"}
	if got := problems(t, control.Validate(t.Context(), wrong)); !slices.Equal(got, want) {
		t.Errorf("Validate found %q, want %q", got, want)
	}
	if got := problems(t, control.Configure(t.Context(), wrong)); !slices.Equal(got, want) {
		t.Errorf("Configure found %q, want %q", got, want)
	}
	dir := t.TempDir()
	right := plugins.Config{JSON: json.RawMessage(`{"note": "hello"}`), DataDir: dir}
	if err := control.Configure(t.Context(), right); err != nil {
		t.Fatalf("Configure after one that was refused: %v", err)
	}
	if err := control.Configure(t.Context(), right); !errors.Is(err, plugins.ErrInvalid) {
		t.Errorf("a second Configure: %v, want invalid", err)
	}

	usable(t, store)
	end(t, client)
	if _, err := os.Stat(filepath.Join(dir, "closed")); err != nil {
		t.Errorf("the plugin was not closed: %v", err)
	}
	if _, err := store.Get(t.Context(), "one"); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("after shutdown: got %v, want unavailable", err)
	}
	for _, field := range []string{`"@message":"the diary is open"`, `"note":"hello"`, `"pages":42`, `"@level":"warn"`, "the page is torn"} {
		if !strings.Contains(log.String(), field) {
			t.Errorf("the host's log lacks %s:\n%s", field, log)
		}
	}
}

// end asks a plugin to exit, and waits longer for it than Kill alone, which ends a plugin after two seconds.
func end(t *testing.T, client *goplugin.Client) {
	t.Helper()
	protocol, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	_ = protocol.Close()
	testkit.Eventually(t, "the plugin has ended", client.Exited)
	client.Kill() // after that, its last output is in the log
}

// usable checks that a configured store works, even after a call that panicked.
func usable(t *testing.T, store sessionstore.Store) {
	t.Helper()
	if err := store.Put(t.Context(), sessionstore.Record{ID: "one", Subject: "s"}, time.Minute); err != nil {
		t.Error(err)
	}
	if rec, err := store.Get(t.Context(), "one"); err != nil || rec.Subject != "s" {
		t.Errorf("got %+v, %v", rec, err)
	}
	if _, err := store.Get(t.Context(), "two"); !errors.Is(err, plugins.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
	if _, err := store.Get(t.Context(), "panic"); err == nil || strings.Contains(err.Error(), "torn") {
		t.Errorf("a call that panics: %v", err)
	}
	if _, err := store.Get(t.Context(), "one"); err != nil {
		t.Errorf("after a call that panicked: %v", err)
	}
}

func TestAPluginThatIsTerminatedClosesFirst(t *testing.T) {
	client := host(t, plugins.KindSessionStore, 1, &testkit.Log{})
	control := pluginhost.NewControl(dispense(t, client, plugins.KindSessionStore))
	dir := t.TempDir()
	if err := control.Configure(t.Context(), plugins.Config{DataDir: dir}); err != nil {
		t.Fatal(err)
	}
	socket := client.ReattachConfig().Addr.String()
	if err := syscall.Kill(client.ReattachConfig().Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	tick, late := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !client.Exited() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the plugin did not exit")
		}
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the plugin left its socket behind: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "closed")); err != nil {
		t.Errorf("the plugin was not closed: %v", err)
	}
}

func TestAPluginIsRefusedBeforeTheConnection(t *testing.T) {
	t.Run("when another kind is wanted", func(t *testing.T) {
		log := &testkit.Log{}
		client := host(t, plugins.KindAuth, 1, log)
		_, err := client.Client()
		client.Kill() // after that, its last output is in the log
		if err == nil || !strings.Contains(log.String(), "is of kind sessionstore, but was started as one of kind auth") {
			t.Errorf("got %v, log:\n%s", err, log)
		}
	})
	t.Run("when no wire version is shared", func(t *testing.T) {
		if _, err := host(t, plugins.KindSessionStore, 2, &testkit.Log{}).Client(); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("when a person starts it", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = []string{asPlugin + "=1"}
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "plugin of kind sessionstore") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func problems(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	config, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok || !errors.Is(err, plugins.ErrInvalid) {
		t.Fatalf("got %v, want a ConfigError that is ErrInvalid", err)
	}
	var lines []string
	for _, p := range config.Problems {
		lines = append(lines, p.String())
	}
	return lines
}
