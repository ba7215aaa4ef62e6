package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/layer"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/core/trust"
)

// load loads a file's text from its own home. env is the complete environment.
func load(t *testing.T, text string, env Environment, change ...func(*Options)) (*Config, error) {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "ropewalk.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Home: home, Environment: env}
	for _, c := range change {
		c(&o)
	}
	return Load(o)
}

func mustLoad(t *testing.T, text string, env Environment, change ...func(*Options)) *Config {
	t.Helper()
	c, err := load(t, text, env, change...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWithoutConfigurationTheDefaultsApply(t *testing.T) {
	home := t.TempDir()
	c, err := Load(Options{Environment: Environment{"HOME": home}})
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Home: filepath.Join(home, ".ropewalk"),
		HTTP: HTTP{Host: "127.0.0.1", Port: 27247, Console: true, TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
		}},
		SessionStore: Plugin{Name: "memory", Adapter: "memory", At: "sessionStore"},
		Storage:      Storage{StaleMembership: 5 * time.Minute, ApprovalRetention: 30 * 24 * time.Hour},
		Features: Features{
			"mcpServer": true, "bundleManagement": true, "bundleDiscovery": true, "toolDiscovery": true, "skillManagement": true,
			"delegation": true, "userManagement": true, "workspaceManagement": true, "fileContext": true,
		},
		Models: Models{MaxOutputTokens: 8192, Providers: map[string]ModelProvider{
			"anthropic": {Type: ProviderAnthropic}, "openai": {Type: ProviderOpenAI},
		}},
		Apps:   map[string]App{},
		Idle:   10 * time.Minute,
		MCP:    MCP{MaxSessions: 100, MaxInstances: 64, SessionTTL: 8 * time.Hour},
		Chat:   Chat{ElicitationTimeout: 5 * time.Minute},
		Log:    Log{Level: "info", Format: "text"},
		Limits: Limits{APIBodyBytes: 1 << 20, MCPBodyBytes: 4 << 20, AnswerBytes: 16 << 20},
		Tools:  Tools{Pin: trust.PinEnforce, Approve: []string{}, ApprovalWait: 45 * time.Second, ApprovalExpiry: 15 * time.Minute, CallTimeout: 5 * time.Minute, Surface: "full", Surfaces: map[string]string{}, ResultBudget: 12500, Favourites: []string{}},
		Sandbox: Sandbox{
			Grantable: GrantersOrg,
			Level:     sandbox.LevelNamespaces, Network: sandbox.Network{Mode: sandbox.NetworkLoopbackOff},
			Limits: sandbox.Limits{Memory: 2 << 30, Processes: 256, OpenFiles: 4096, FileSize: 4 << 30},
		},
		Plugins: Plugins{
			StartTimeout: 30 * time.Second, CallTimeout: 10 * time.Second, PassEnv: []string{},
			Limits: PluginLimits{Memory: 2 << 30, OpenFiles: 8192, Processes: 256, LogLines: 1000},
		},
		Environment: Environment{"HOME": home},
		places:      layer.Places{},
	}
	want.effective = c.effective // has its own test
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %#v\nwant %#v", c, want)
	}
	if !c.Dev() {
		t.Error("this is not dev mode")
	}
}

func TestEverySettingIsReadIntoItsField(t *testing.T) {
	sum := strings.Repeat("Ab", 32)
	c := mustLoad(t, `
http:
  host: 0.0.0.0
  port: 8080
  baseUrl: https://tools.example.com/
  trustedProxies: [10.1.2.3, 192.168.7.7/16]
  allowedHosts: [Tools.Example.com, "localhost:8080"]
  allowedOrigins: ["https://App.example.com:443", "http://localhost:5173"]
apiKey: from-the-file-123
auth:
  adapter: oidc
  path: bin/auth-oidc
  sha256: `+sum+`
  audience: [one, two]
  clientId: client
  redirectUri: https://tools.example.com/v1/auth/callback
  issuer: https://id.example.com
  nested: {a: [1, 2.5, 12345678901234567890, true, null]}
sessionStore: redis
registries:
  - {name: internal, adapter: directory, folder: /bundles}
  - {name: world, adapter: mpak}
features: {delegation: false}
apps:
  files: {path: bundles/files, env: {ROOT: /data}, protected: true}
  kept: {protected: true}
  notes: {name: "@a/notes", version: 1.2.3}
  far: {url: https://far.example.com/mcp}
  linked: {url: https://far.example.com/mcp, transport: {auth: {type: user, clientId: c, clientSecret: s, issuer: "https://i", scopes: [a, b]}}}
  near: {url: https://near.example.com/sse, transport: {type: sse, headers: {X-A: b}, auth: {type: header, name: X-Key, value: v}}}
mcp: {maxSessions: 7, maxInstances: 9, sessionTtlSeconds: 60, replica: b2}
log: {level: debug, format: json}
plugins: {startTimeoutSeconds: 5, callTimeoutSeconds: 6, passEnv: [HTTPS_PROXY], limits: {memoryMiB: 1, openFiles: 2, processes: 3, logLinesPerSecond: 4}}
`, nil)
	home := c.Home
	equal(t, "http", c.HTTP, HTTP{
		Host: "0.0.0.0", Port: 8080, BaseURL: "https://tools.example.com", AllowedHosts: []string{"tools.example.com", "localhost:8080"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("192.168.0.0/16")}, Console: true,
	})
	equal(t, "origins", c.AllowedOrigins, []string{"https://app.example.com", "http://localhost:5173"})
	equal(t, "key", c.APIKey.Reveal(), "from-the-file-123")
	equal(t, "auth", c.Auth[0], Auth{
		Plugin:    Plugin{Name: "oidc", Adapter: "oidc", Path: filepath.Join(home, "bin/auth-oidc"), SHA256: strings.ToLower(sum), At: "auth", Settings: c.Auth[0].Settings},
		Audiences: []string{"one", "two"}, ClientID: "client", RedirectURI: "https://tools.example.com/v1/auth/callback", Recheck: 5 * time.Minute,
	})
	equal(t, "auth settings", string(c.Auth[0].Settings.JSON()),
		`{"clientId":"client","issuer":"https://id.example.com","nested":{"a":[1,2.5,12345678901234567890,true,null]},"redirectUri":"https://tools.example.com/v1/auth/callback"}`)
	equal(t, "session store", c.SessionStore, Plugin{Name: "redis", Adapter: "redis", At: "sessionStore"})
	equal(t, "session store settings", string(c.SessionStore.Settings.JSON()), `{}`)
	equal(t, "registries", c.Registries, []Plugin{
		{Name: "internal", Adapter: "directory", At: "registries[0]", Settings: NewSettings(json.RawMessage(`{"folder":"/bundles"}`))},
		{Name: "world", Adapter: "mpak", At: "registries[1]"},
	})
	equal(t, "features", []bool{c.Features.Enabled(FlagDelegation), c.Features.Enabled(FlagMCPServer), Features(nil).Enabled(FlagMCPServer)},
		[]bool{false, true, true})
	equal(t, "apps", c.Apps, map[string]App{
		"files": {Source: core.Source{Kind: core.SourcePath, Ref: filepath.Join(home, "bundles/files")}, Env: map[string]core.Secret{"ROOT": "/data"}, Protected: true},
		"kept":  {Protected: true},
		"notes": {Source: core.Source{Kind: core.SourceName, Ref: "@a/notes"}, Version: "1.2.3"},
		"far": {Source: core.Source{Kind: core.SourceURL, Ref: "https://far.example.com/mcp"},
			Remote: &core.Remote{URL: "https://far.example.com/mcp", Type: "streamable-http", Auth: core.RemoteAuth{Type: "none"}, AllowPrivate: true}},
		"linked": {Source: core.Source{Kind: core.SourceURL, Ref: "https://far.example.com/mcp"},
			Remote: &core.Remote{URL: "https://far.example.com/mcp", Type: "streamable-http", AllowPrivate: true,
				Auth: core.RemoteAuth{Type: core.AuthUser, ClientID: "c", ClientSecret: "s", Issuer: "https://i", Scopes: "a b"}}},
		"near": {Source: core.Source{Kind: core.SourceURL, Ref: "https://near.example.com/sse"},
			Remote: &core.Remote{URL: "https://near.example.com/sse", Type: "sse", Headers: map[string]core.Secret{"X-A": "b"},
				Auth: core.RemoteAuth{Type: "header", Name: "X-Key", Value: "v"}, AllowPrivate: true}},
	})
	equal(t, "mcp", c.MCP, MCP{MaxSessions: 7, MaxInstances: 9, SessionTTL: time.Minute, Replica: "b2"})
	equal(t, "log", c.Log, Log{Level: "debug", Format: "json"})
	equal(t, "plugins", c.Plugins, Plugins{
		StartTimeout: 5 * time.Second, CallTimeout: 6 * time.Second, PassEnv: []string{"HTTPS_PROXY"},
		Limits: PluginLimits{Memory: 1 << 20, OpenFiles: 2, Processes: 3, LogLines: 4},
	})
}

func TestAFlagBeatsTheEnvironmentBeatsTheFileBeatsTheDefault(t *testing.T) {
	host, port := "localhost", 9
	env := Environment{EnvAPIKey: "the-key-from-the-environment", EnvMaxSessions: " 5 ", EnvSessionTTL: "6", EnvAllowedOrigins: "https://a.b, https://c.d,"}
	file := "apiKey: the-key-of-the-file\nhttp: {port: 1, host: 0.0.0.0, allowedOrigins: ['https://file']}\nmcp: {maxSessions: 2, sessionTtlSeconds: 3}\n"
	cases := []struct {
		name string
		c    *Config
		want string
	}{
		{"nothing", mustLoad(t, "", nil), "127.0.0.1 27247 100 8h0m0s [] "},
		{"a file", mustLoad(t, file, nil), "0.0.0.0 1 2 3s [https://file] the-key-of-the-file"},
		{"a file and the environment", mustLoad(t, file, env), "0.0.0.0 1 5 6s [https://a.b https://c.d] the-key-from-the-environment"},
		{"all three", mustLoad(t, file, env, func(o *Options) { o.Flags = Flags{Host: &host, Port: &port} }),
			"localhost 9 5 6s [https://a.b https://c.d] the-key-from-the-environment"},
		{"an empty variable is treated as unset", mustLoad(t, file, Environment{EnvAllowedOrigins: ""}), "0.0.0.0 1 2 3s [https://file] the-key-of-the-file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fmt.Sprint(c.c.HTTP.Host, " ", c.c.HTTP.Port, " ", c.c.MCP.MaxSessions, " ", c.c.MCP.SessionTTL, " ", c.c.AllowedOrigins, " ", c.c.APIKey.Reveal())
			equal(t, c.name, got, c.want)
		})
	}
}

func TestTheHomeAndTheFileAreFound(t *testing.T) {
	user, byEnv, byFlag := t.TempDir(), t.TempDir(), t.TempDir()
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"http": {"port": 5}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Options{Environment: Environment{"HOME": user, EnvHome: byEnv}})
	if err != nil || c.Home != byEnv || c.File != "" {
		t.Errorf("by environment: %v, %+v", err, c)
	}
	c, err = Load(Options{Home: byFlag, Path: other, Environment: Environment{"HOME": user, EnvHome: byEnv}})
	if err != nil || c.Home != byFlag || c.File != other || c.HTTP.Port != 5 {
		t.Errorf("by flag, with a JSON file: %v, %+v", err, c)
	}
	_, err = Load(Options{Home: byFlag, Path: other + "x"})
	equal(t, "a requested file that does not exist", err.Error(), "configuration: "+other+"x: cannot be read: no such file or directory")
	_, err = Load(Options{Home: other})
	equal(t, "a home that is a file", err.Error(), "configuration: "+filepath.Join(other, "ropewalk.yaml")+": the home "+other+" is not a directory; choose another with --home or ROPEWALK_HOME")
	_, err = Load(Options{})
	equal(t, "no home at all", err.Error(), "configuration: flag --home: there is no home; set --home or ROPEWALK_HOME, because HOME is not set either")
}

func TestTextSettingsMayComeFromTheEnvironment(t *testing.T) {
	c := mustLoad(t, "apiKey: ${env:MY_KEY}\nauth: {adapter: x, clientId: 'a-${env:A}-$${env:A}', n: '${env:N}', quoted: \"${env:MY_KEY}\"}\n",
		Environment{"MY_KEY": "s3cret-s3cret-s3cret", "A": "b", "N": "5"})
	equal(t, "key", c.APIKey.Reveal(), "s3cret-s3cret-s3cret")
	equal(t, "settings", string(c.Auth[0].Settings.JSON()), `{"clientId":"a-b-${env:A}","n":"5","quoted":"s3cret-s3cret-s3cret"}`)
}

func TestTheWorkOSKeyFromTheEnvironmentGoesOnlyToThatAdapter(t *testing.T) {
	env := Environment{EnvWorkOSKey: "sk_1"}
	equal(t, "workos", string(mustLoad(t, "auth: {adapter: workos, idpDomain: x}", env).Auth[0].Settings.JSON()), `{"apiKey":"sk_1","idpDomain":"x"}`)
	equal(t, "set in the file", string(mustLoad(t, "auth: {adapter: workos, idpDomain: x, apiKey: sk_2}", env).Auth[0].Settings.JSON()), `{"apiKey":"sk_2","idpDomain":"x"}`)
	equal(t, "oidc", string(mustLoad(t, "auth: {adapter: oidc, idpDomain: x}", env).Auth[0].Settings.JSON()), `{"idpDomain":"x"}`)
}

func TestAnAppWithoutAnIdleSettingUsesTheGlobalOne(t *testing.T) {
	c := mustLoad(t, "idle: 90s\napps: {a: {idle: never}, b: {idle: 2h}, c: {protected: true}}\n", nil)
	equal(t, "default", mustLoad(t, "", nil).Idle, 10*time.Minute)
	equal(t, "for all", c.Idle, 90*time.Second)
	equal(t, "never", *c.Apps["a"].Idle, time.Duration(0))
	equal(t, "longer", *c.Apps["b"].Idle, 2*time.Hour)
	equal(t, "never for all", mustLoad(t, "idle: never\napps: {maxAwake: 10}\n", nil).Idle, time.Duration(0))
	if c.Apps["c"].Idle != nil {
		t.Errorf("an app without the setting has %v", *c.Apps["c"].Idle)
	}
}

func TestAKeyWithoutAValueIsTreatedAsUnset(t *testing.T) {
	c := mustLoad(t, "http:\n#  port: 1\nauth:\nmcp: {maxSessions: }\n", nil)
	equal(t, "port", c.HTTP.Port, 27247)
	equal(t, "sessions", c.MCP.MaxSessions, 100)
	equal(t, "dev mode", c.Dev(), true)
}

func TestYAMLIsReadAsVersionOnePointTwo(t *testing.T) {
	c := mustLoad(t, "auth: {adapter: x, a: yes, b: off, c: 010, d: 0o10, e: 0x1F, f: 2026-11-05, g: 1_000, h: 1.50, i: !!str 5, j: ~, k: TRUE, l: .5e1}", nil)
	equal(t, "settings", string(c.Auth[0].Settings.JSON()),
		`{"a":"yes","b":"off","c":10,"d":8,"e":31,"f":"2026-11-05","g":"1_000","h":1.5,"i":"5","j":null,"k":true,"l":5}`)
	c = mustLoad(t, "auth: {adapter: x, a: &one {b: 1}, c: *one}", nil)
	equal(t, "an alias", string(c.Auth[0].Settings.JSON()), `{"a":{"b":1},"c":{"b":1}}`)
}

func TestNothingPrintsASecret(t *testing.T) {
	c := mustLoad(t, "apiKey: canary-key-0001\nauth: {adapter: x, clientSecret: canary-0002}\napps: {a: {path: p, env: {T: canary-0003}}}\n",
		Environment{"OTHER": "canary-0004"})
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v", c), fmt.Sprintf("%+v", *c), fmt.Sprintf("%#v", c), fmt.Sprintf("%v %x", c.Auth, c.Environment), string(raw)} {
		if strings.Contains(text, "canary") || strings.Contains(text, "63616e617279") { // the same in hex
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

func TestAllowedButUnwiseSettingsCauseWarnings(t *testing.T) {
	cases := map[string]struct {
		file string
		want []string
	}{
		"a good key":  {"apiKey: sixteen-letters-", nil},
		"a short key": {"apiKey: fifteen-letters", []string{"the API key has only 15 characters; use 16 or more"}},
		"any audience": {"auth: {adapter: x, audience: any}",
			[]string{"auth.audience is any, so tokens that were issued for other services are accepted"}},
		"every address a trusted proxy": {"http: {trustedProxies: [0.0.0.0/0]}",
			[]string{"http.trustedProxies trusts everyone, so any client can claim another address, host and scheme"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { equal(t, name, mustLoad(t, c.file, nil).Warnings, c.want) })
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func TestThePackagesFileConfiguresTheirHomeUnlessTheHomeHasOne(t *testing.T) {
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "packaged.yaml")
	inside := filepath.Join(home, "ropewalk.yaml")
	if got := homeFile(home, home, file); got != inside {
		t.Errorf("without either file: %s", got)
	}
	writeTestFile(t, file)
	if got := homeFile(home, home, file); got != file {
		t.Errorf("with the packages' file: %s", got)
	}
	if got := homeFile(t.TempDir(), home, file); got == file {
		t.Error("another home has the packages' file")
	}
	writeTestFile(t, inside)
	if got := homeFile(home, home, file); got != inside {
		t.Errorf("with both files: %s", got)
	}
}

func writeTestFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
