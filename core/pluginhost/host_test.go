package pluginhost_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	pluginserver "github.com/ropewalk/ropewalk/plugins/server"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// The test binary also serves as the shim, as every built-in and, under a different file name, as a third-party plugin.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "plugin" {
		pluginserver.Serve(builtins[plugins.Kind(os.Args[3])][os.Args[4]]())
		return
	}
	if filepath.Base(os.Args[0]) == "sessionstore-third" {
		sessionstore.Serve(&store{Store: memory.New()})
		return
	}
	goleak.VerifyTestMain(m)
}

var builtins = pluginhost.Builtins{
	plugins.KindSessionStore: {
		"memory":   func() plugins.Plugin { return sessionstore.Plugin(memory.New()) },
		"child":    func() plugins.Plugin { return sessionstore.Plugin(&store{Store: memory.New()}) },
		"fleeting": func() plugins.Plugin { return sessionstore.Plugin(&fleeting{Store: memory.New()}) },
		"hanging":  func() plugins.Plugin { return sessionstore.Plugin(&hanging{Store: memory.New()}) },
		"holder":   func() plugins.Plugin { return sessionstore.Plugin(&holder{picky{Store: memory.New()}}) },
		"mirror":   func() plugins.Plugin { return sessionstore.Plugin(&mirror{Store: memory.New()}) },
		"picky":    func() plugins.Plugin { return sessionstore.Plugin(&picky{Store: memory.New()}) },
		"sole":     newSole,
	},
	plugins.KindAuth: {
		"yes":      func() plugins.Plugin { return auth.Plugin(yes{}) },
		"revoking": func() plugins.Plugin { return auth.Plugin(revoking{}) },
	},
}

// store handles special requests, so that a test can look inside its process.
type store struct {
	sessionstore.Store
	log      hclog.Logger
	password string
}

// Configure accepts a password, which the plugin writes when it crashes.
func (s *store) Configure(_ context.Context, c plugins.Config) error {
	var settings struct {
		Password string `json:"password"`
	}
	err := c.Decode(&settings)
	s.password = settings.Password
	return err
}

func (s *store) UseLogger(log hclog.Logger) { s.log = log }

func (s *store) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	switch {
	case id == "slow":
		s.log.Info("A slow call began.")
		<-time.After(300 * time.Millisecond) // a slow backend
		return sessionstore.Record{ID: id}, nil
	case id == "breakpoint":
		if os.Getenv("STARTED_BY") == "developer" {
			select {}
		}
		return sessionstore.Record{ID: id, Subject: "the server's"}, nil
	case id == "crash":
		for i := range 30 {
			s.log.Error(fmt.Sprintf("line %d of %s;", i, s.password))
		}
		os.Exit(3)
	case strings.HasPrefix(id, "use:"):
		return sessionstore.Record{}, exhaust(ctx, strings.TrimPrefix(id, "use:"))
	case id == "flood":
		for i := range 500 {
			fmt.Fprintf(os.Stderr, "line %d of the flood\n", i)
		}
		return sessionstore.Record{ID: id}, nil
	case id == "log":
		s.log.Warn("The store was asked to log.", "color", "blue")
		return sessionstore.Record{ID: id}, nil
	case strings.HasPrefix(id, "env:"):
		return sessionstore.Record{ID: id, Subject: os.Getenv(strings.TrimPrefix(id, "env:"))}, nil
	}
	return s.Store.Get(ctx, id)
}

// fleeting starts normally and exits immediately.
type fleeting struct{ sessionstore.Store }

func (*fleeting) Configure(context.Context, plugins.Config) error {
	time.AfterFunc(20*time.Millisecond, func() { os.Exit(7) })
	return nil
}

// hanging does not exit when asked to.
type hanging struct{ sessionstore.Store }

func (*hanging) Close() error { select {} }

// picky is a session store that refuses invalid settings.
type picky struct{ sessionstore.Store }

func (p *picky) Configure(_ context.Context, c plugins.Config) error {
	return c.Decode(&struct {
		URL string `json:"url"`
	}{})
}

// holder declares the struct for its settings. Its errors name the server's version.
type holder struct{ picky }

func (*holder) NewSettings() any {
	return &struct {
		URL string `json:"url"`
	}{}
}

func (h *holder) Configure(ctx context.Context, c plugins.Config) error {
	switch {
	case strings.Contains(string(c.JSON), "crash"):
		os.Exit(3)
	case strings.Contains(string(c.JSON), "wait"):
		<-ctx.Done()
		return ctx.Err()
	}
	return fmt.Errorf("%w: the server has the version %s", plugins.ErrUnavailable, c.HostVersion)
}

// mirror returns errors from Configure and Validate that repeat the values that the server sent.
type mirror struct{ sessionstore.Store }

func (*mirror) Configure(_ context.Context, c plugins.Config) error { return reflected(c) }
func (*mirror) Validate(_ context.Context, c plugins.Config) error  { return reflected(c) }

func reflected(c plugins.Config) error {
	problems := &plugins.ConfigError{}
	problems.Add("", "version %s, capabilities %v, directory %s", c.HostVersion, c.HostCapabilities, c.DataDir)
	return problems
}

// revoking is an auth adapter that revokes the subject that has its process ID as name.
type revoking struct{ yes }

func (revoking) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	if err := revoked(auth.Revocation{Issuer: "i", Subject: fmt.Sprint(os.Getpid())}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

type yes struct{ auth.Adapter }

func (yes) Verify(context.Context, auth.VerifyRequest) (auth.Identity, error) {
	return auth.Identity{Issuer: "i", Subject: "s", ExpiresAt: time.Now().Add(time.Hour)}, nil
}

func newHost(t *testing.T, change ...func(*pluginhost.Options)) *pluginhost.Host {
	o := pluginhost.Options{
		Home: t.TempDir(), Builtins: builtins, Env: config.Environment{"PATH": os.Getenv("PATH"), "CANARY": "sings", "GORACE": os.Getenv("GORACE")},
		PassEnv:      []string{"GORACE"}, // how long a plugin with the race detector takes to exit (see the Makefile)
		StartTimeout: time.Minute, ReplaceWait: time.Minute, PingEvery: 5 * time.Second,
	}
	for _, c := range change {
		c(&o)
	}
	return pluginhost.New(o)
}

func openStore(t *testing.T, h *pluginhost.Host, p config.Plugin) *pluginhost.SessionStore {
	t.Helper()
	s, err := h.SessionStore(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func roundTrip(ctx context.Context, s sessionstore.Store, id string) error {
	if err := s.Put(ctx, sessionstore.Record{ID: id, Subject: "alice"}, time.Minute); err != nil {
		return err
	}
	rec, err := s.Get(ctx, id)
	if err == nil && rec.Subject != "alice" {
		err = fmt.Errorf("the record came back as %+v", rec)
	}
	return err
}

func TestAnAdapterServesInProcessAsAChildAndAsAThirdPartyFile(t *testing.T) {
	third, sum := thirdParty(t, t.TempDir())
	h := newHost(t)
	for name, c := range map[string]struct {
		p     config.Plugin
		state string
	}{
		"memory, in process":         {config.Plugin{Adapter: "memory"}, "in-process"},
		"a built-in, as a child":     {config.Plugin{Adapter: "child"}, "running"},
		"a file with its sha256":     {config.Plugin{Adapter: "anything", Path: third, SHA256: sum}, "running"},
		"its sha256 in upper case":   {config.Plugin{Adapter: "anything", Path: third, SHA256: strings.ToUpper(sum)}, "running"},
		"a file that shadows memory": {config.Plugin{Adapter: "memory", Path: third, SHA256: sum}, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, h, c.p)
			if err := roundTrip(t.Context(), s, "a"); err != nil {
				t.Error(err)
			}
			if _, err := s.Get(t.Context(), "nobody"); !errors.Is(err, plugins.ErrNotFound) {
				t.Errorf("an unknown id returned %v", err)
			}
			all := h.Status()
			if got := all[len(all)-1]; got.State != c.state || (got.PID == 0) != (c.state == "in-process") {
				t.Errorf("status is %+v", got)
			}
			s.Close(t.Context())
			if len(h.Status()) != len(all)-1 {
				t.Error("a closed plugin is still listed")
			}
		})
	}
}

func TestAPluginInTheHomeIsFoundByNameAndPinnedAtFirstUse(t *testing.T) {
	var home string
	h := newHost(t, func(o *pluginhost.Options) { home = o.Home })
	thirdParty(t, filepath.Join(home, "plugins"))
	file := filepath.Join(home, "plugins", "sessionstore-third")
	if err := h.Check(t.Context(), plugins.KindSessionStore, config.Plugin{Adapter: "third"}); !errors.Is(err, plugins.ErrUnimplemented) {
		t.Fatal(err)
	}
	changeOneByte(t, file) // a check does not accept a file
	openStore(t, h, config.Plugin{Adapter: "third"}).Close(t.Context())
	changeOneByte(t, file)
	_, err := h.SessionStore(t.Context(), config.Plugin{Adapter: "third"})
	says(t, err, "third", file, "changed", "ropewalk plugin verify --accept sessionstore-third")

	sums := pluginhost.LockFile{Home: home}
	for meant, want := range map[string]string{"third": "sessionstore-third", "sessionstore-third": "sessionstore-third", "fourth": "fourth"} {
		if got := sums.FileOf(meant); got != want {
			t.Errorf("the file of %s is %s, want %s", meant, got, want)
		}
	}
	if _, err := sums.Accept("sessionstore-third"); err != nil {
		t.Fatal(err)
	}
	openStore(t, h, config.Plugin{Adapter: "third"})
}

func TestAFileChangedByOneByteIsNotStarted(t *testing.T) {
	file, sum := thirdParty(t, t.TempDir())
	changeOneByte(t, file)
	_, err := newHost(t).SessionStore(t.Context(), config.Plugin{Adapter: "third", Path: file, SHA256: sum})
	says(t, err, "third", file, "sha256")
}

func TestAPluginThatCannotServeCausesOneClearError(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) config.Plugin {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		sum, err := pluginhost.HashFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return config.Plugin{Adapter: name, Path: path, SHA256: sum}
	}
	notExecutable := script("not-executable", "exit 0")
	if err := os.Chmod(notExecutable.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	third, sum := thirdParty(t, dir)
	var lines testkit.Log
	logged := func(o *pluginhost.Options) { o.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines}) }
	patient, impatient := newHost(t, logged), newHost(t, logged, func(o *pluginhost.Options) { o.StartTimeout = 2 * time.Second })
	for name, c := range map[string]struct {
		p    config.Plugin
		says []string
	}{
		"a plugin that prints junk":                 {script("junk", "echo hello; sleep 60"), []string{"handshake line", "hello", "standard error"}},
		"a plugin that never answers":               {script("silent", "sleep 60"), []string{"did not respond in time", "plugins.startTimeout"}},
		"a plugin that exits at once":               {script("gone", "echo 'no libfoo here' >&2; exit 3"), []string{"exited before it was ready", "status 3", "no libfoo here"}},
		"a plugin with an unknown protocol version": {script("future", "echo '1|99|unix|/tmp/x|grpc|'; sleep 60"), []string{"no protocol version", "rebuild"}},
		"a plugin that does not speak gRPC":         {script("netrpc", "echo '1|1|unix|/tmp/x|netrpc|'; sleep 60"), []string{"gRPC"}},
		"a plugin that logs in another format": {
			script("odd", `echo '{"@message":1,"@level":{},"@timestamp":[]}' >&2; echo junk; sleep 60`), []string{"handshake line"},
		},
		"a file that is not executable": {notExecutable, []string{"executable"}},
		"a missing plugin":              {config.Plugin{Adapter: "absent"}, []string{"no such plugin", "child, fleeting, hanging, holder, memory, mirror, picky, sole"}},
		"a name that points elsewhere":  {config.Plugin{Adapter: "../../bin/sh"}, []string{"not a valid adapter name"}},
		"a missing path":                {config.Plugin{Adapter: "lost", Path: filepath.Join(dir, "lost"), SHA256: sum}, []string{"no such file"}},
		"a store where an auth adapter belongs": {
			config.Plugin{Adapter: "third", Path: third, SHA256: sum}, []string{"of kind sessionstore", "of kind auth"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := patient
			if name == "a plugin that never answers" {
				h = impatient
			}
			var err error
			if strings.Contains(name, "auth adapter") {
				_, err = h.Auth(t.Context(), c.p)
			} else {
				_, err = h.SessionStore(t.Context(), c.p)
			}
			says(t, err, append(c.says, c.p.Adapter, c.p.Path)...)
			if len(h.Status()) != 0 {
				t.Error("a plugin that did not start is listed")
			}
			if got := lines.String(); strings.Contains(got, "plugin process exited") || strings.Contains(got, "exit gracefully") {
				t.Errorf("the log has lines about the process in addition to the error: %s", got)
			}
		})
	}
}

func TestInvalidSettingsAreReportedWithTheirPaths(t *testing.T) {
	h := newHost(t)
	p := config.Plugin{Adapter: "picky", Settings: config.NewSettings([]byte(`{"ulr":"x"}`))}
	_, err := h.SessionStore(t.Context(), p)
	wrong, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok || len(wrong.Problems) != 1 || wrong.Problems[0].Path != "ulr" || wrong.Problems[0].Nearest != "url" {
		t.Errorf("starting returned %v", err)
	}
	if err := h.Check(t.Context(), plugins.KindSessionStore, p); !errors.Is(err, plugins.ErrUnimplemented) {
		t.Errorf("picky can check its settings only by applying them; a check returns %v", err)
	}
	holder := config.Plugin{Adapter: "holder", Settings: p.Settings}
	wrong, ok = errors.AsType[*plugins.ConfigError](h.Check(t.Context(), plugins.KindSessionStore, holder))
	if !ok || len(wrong.Problems) != 1 || wrong.Problems[0].Nearest != "url" {
		t.Errorf("a plugin that names its settings struct is not checked against it: %v", wrong)
	}
	memory := config.Plugin{Adapter: "memory", Settings: config.NewSettings([]byte(`{"ttl":1}`))}
	if err := h.Check(t.Context(), plugins.KindSessionStore, memory); !errors.Is(err, plugins.ErrInvalid) {
		t.Errorf("a check of a setting that memory does not have returns %v", err)
	}
}

func TestAPluginIsGivenTheVersionOfTheServer(t *testing.T) {
	_, err := newHost(t, func(o *pluginhost.Options) { o.Version = "1.2.3" }).SessionStore(t.Context(), config.Plugin{Adapter: "holder"})
	says(t, err, "its backend cannot be reached", "version 1.2.3")
}

func TestAPluginThatFailsInConfigureSaysHow(t *testing.T) {
	h := newHost(t, func(o *pluginhost.Options) { o.StartTimeout = 15 * time.Second }) // also for the start of the process
	for settings, want := range map[string][]string{
		`{"url": "crash"}`: {"crashed during Configure (exited with status 3)"},
		`{"url": "wait"}`:  {"did not accept its settings within 15s", "plugins.startTimeoutSeconds"},
		`{}`:               {"its backend cannot be reached"},
	} {
		_, err := h.SessionStore(t.Context(), config.Plugin{Adapter: "holder", Settings: config.NewSettings([]byte(settings))})
		says(t, err, want...)
	}
}

func TestADeadPluginsErrorHasItsLastLinesWithoutSecrets(t *testing.T) {
	h := newHost(t)
	s := openStore(t, h, config.Plugin{Adapter: "child", Settings: config.NewSettings([]byte(`{"password": "hunter22"}`))})
	if _, err := s.Get(t.Context(), "crash"); err == nil {
		t.Error("a call that crashes every process succeeds")
	}
	text := h.Status()[0].LastErr
	says(t, errors.New(text), "its process exited: exited with status 3; its last output: ", "line 10 of [redacted];", "line 29 of [redacted];")
	if strings.Contains(text, "hunter22") || strings.Contains(text, "line 9 of") {
		t.Errorf("it says %s", text)
	}
}

func TestOnlyListedEnvironmentVariablesReachAPlugin(t *testing.T) {
	s := openStore(t, newHost(t), config.Plugin{Adapter: "child"})
	for name, want := range map[string]string{"CANARY": "", "HOME": "", "PATH": os.Getenv("PATH")} {
		if rec, err := s.Get(t.Context(), "env:"+name); err != nil || rec.Subject != want {
			t.Errorf("%s is %q in the plugin, %v", name, rec.Subject, err)
		}
	}
	passing := openStore(t, newHost(t, func(o *pluginhost.Options) { o.PassEnv = append(o.PassEnv, "CANARY") }), config.Plugin{Adapter: "child"})
	if rec, err := passing.Get(t.Context(), "env:CANARY"); err != nil || rec.Subject != "sings" {
		t.Errorf("a variable that passEnv names is %q in the plugin, %v", rec.Subject, err)
	}
}

func TestAPluginIsGivenACertificateThatEveryTLSLibraryAccepts(t *testing.T) {
	s := openStore(t, newHost(t), config.Plugin{Adapter: "child"})
	rec, err := s.Get(t.Context(), "env:PLUGIN_CLIENT_CERT")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(rec.Subject))
	if block == nil {
		t.Fatalf("the certificate is %q", rec.Subject)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("its key is a %T; BoringSSL, and with it gRPC for Python, accepts P-256 and not P-521", cert.PublicKey)
	}
}

// says fails unless err contains all of the parts.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// thirdParty copies the test binary to dir, under a name that makes it a session store, and returns its path
// and sha256.
func thirdParty(t *testing.T, dir string) (path, sum string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "sessionstore-third")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if sum, err = pluginhost.HashFile(path); err != nil {
		t.Fatal(err)
	}
	return path, sum
}

// changeOneByte appends to the file, which remains a working executable.
func changeOneByte(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
