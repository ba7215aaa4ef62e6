package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config/schema"
)

// directorySettings stands for the settings schema that a built-in adapter publishes.
const directorySettings = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
	"required": ["folder"], "properties": {"folder": {"type": "string"}, "depth": {"type": "integer", "minimum": 1}}}`

func builtins(o *Options) {
	o.Adapters = []schema.Adapter{
		{Kind: "auth", Name: "oidc"}, {Kind: "auth", Name: "workos"}, {Kind: "auth", Name: "static"},
		{Kind: "sessionstore", Name: "memory"}, {Kind: "sessionstore", Name: "redis"},
		{Kind: "registry", Name: "directory", Settings: json.RawMessage(directorySettings)},
	}
}

// The cases are broken files with everything that is reported about them: the line, the path and the sentence.
// A case is named after what is wrong.
func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	key := "a-good-long-key-1234"
	cases := []struct {
		name string
		file string
		env  Environment
		want string
	}{
		{
			name: "unknown keys, each with the nearest known name",
			file: "htp: {}\nhttp:\n  prot: 80\n  zzz: 1\nfeatures: {mcpServers: false}\nlog:\n  Level: info\n",
			want: `1: htp: unknown key; did you mean http?
3: http.prot: unknown key; did you mean port?
4: http.zzz: unknown key; known names are allowedHosts, allowedOrigins, baseUrl, console, host, metrics, port, shutdownDelaySeconds, tls, trustedProxies, viewOrigin
5: features.mcpServers: unknown key; did you mean mcpServer?
7: log.Level: unknown key; did you mean level?`,
		},
		{
			name: "wrong types",
			file: "http: {port: '80', host: [a], trustedProxies: 10.0.0.0/8}\nfeatures: {delegation: 1}\nregistries: {a: b}\napps: [x]\nsessionStore: [redis]\nmcp: 5\nlog: {level: 3}\napiKey: 12345678\n",
			want: `1: http.port: must be a whole number, not text
1: http.host: must be text, not a list
1: http.trustedProxies: must be a list, not text
2: features.delegation: must be true or false, not a number
3: registries: must be a list, not a mapping
4: apps: must be a mapping, not a list
5: sessionStore: must be text or a mapping, not a list
6: mcp: must be a mapping, not a number
7: log.level: must be text, not a number
8: apiKey: must be text, not a number`,
		},
		{
			name: "numbers out of range, and a fraction",
			file: "http: {port: 65536}\nmcp: {maxSessions: 0, sessionTtlSeconds: 1.5}\nplugins: {callTimeoutSeconds: -1}\n",
			want: `1: http.port: must be at most 65535
2: mcp.maxSessions: must be at least 1
2: mcp.sessionTtlSeconds: must be a whole number, not a number
3: plugins.callTimeoutSeconds: must be at least 1`,
		},
		{
			name: "values that are not in the enum",
			file: "log: {level: wran, format: xml}\n",
			want: `1: log.level: "wran" is not one of trace, debug, info, warn, error; did you mean warn?
1: log.format: "xml" is not one of text, json`,
		},
		{
			name: "dev mode that listens to the network",
			file: "http: {host: 0.0.0.0}\n",
			want: `1: http.host: a server in dev mode (neither SERVICE_API_KEY nor auth.adapter is set) can listen only on loopback; set one of them, or listen on 127.0.0.1`,
		},
		{name: "no dev mode, with a key", file: "http: {host: 0.0.0.0}\napiKey: " + key, want: ""},
		{name: "no dev mode, with an adapter", file: "http: {host: 0.0.0.0}\nauth: {adapter: oidc}", want: ""},
		{name: "dev mode on any loopback address", file: "http: {host: 127.7.7.7}", want: ""},
		{name: "a short key is one problem, not dev mode as well", file: "http: {host: 0.0.0.0}\napiKey: short", want: `2: apiKey: must have at least 8 characters; omit it for dev mode`},
		{
			name: "an auth section that is wrong is one problem, not dev mode as well",
			file: "http: {host: 0.0.0.0}\nauth: {clientId: x}", want: `2: auth.adapter: is required`,
		},
		{
			name: "a plugin's path without its hash, and vice versa",
			file: "auth: {adapter: oidc, path: x}\nsessionStore: {adapter: redis, sha256: " + strings.Repeat("a", 64) + "}\nregistries:\n- {name: a, adapter: mine, path: x, sha256: abc}\n",
			want: `1: auth.path: requires sha256: path is the executable of a plugin that is not built in
2: sessionStore.sha256: requires path
4: registries[0].sha256: must be 64 hex digits, as sha256sum prints them`,
		},
		{
			name: "workos without idpDomain, and a redirect that points elsewhere",
			file: "auth:\n  adapter: workos\n  redirectUri: https://a.example/callback\n",
			want: `1: auth.idpDomain: is required: enabling OAuth requires idpDomain, the subdomain part of the identity provider's URL
3: auth.redirectUri: must be an address of the form <base URL>/v1/auth/callback`,
		},
		{
			name: "a key of the spec in the wrong case",
			file: "auth: {adapter: oidc, clientID: x, issuer: y}\nsessionStore: {Adapter: redis}\n",
			want: `1: auth.clientID: unknown key; did you mean clientId?
2: sessionStore.adapter: is required
2: sessionStore.Adapter: unknown key; did you mean adapter?`,
		},
		{
			name: "adapters that do not exist",
			file: "auth: {adapter: oicd}\nsessionStore: rediss\nregistries: [{name: a, adapter: directory, folder: x}, {name: b, adapter: Mine}]\n",
			want: `1: auth.adapter: there is no built-in adapter "oicd", and no plugin of that name in HOME/plugins; did you mean oidc?
2: sessionStore: there is no built-in adapter "rediss", and no plugin of that name in HOME/plugins; did you mean redis?
3: registries[1].adapter: must be an adapter's name: lower-case letters, digits and hyphens; path and sha256 specify an executable`,
		},
		{
			name: "settings that a built-in adapter's schema refuses",
			file: "registries:\n- {name: a, adapter: directory, foldr: x, depth: 0}\n- {name: b, adapter: directory, folder: 5}\n",
			want: `2: registries[0].folder: is required
2: registries[0].foldr: unknown key; did you mean folder?
2: registries[0].depth: must be at least 1
3: registries[1].folder: must be text, not a number`,
		},
		{
			name: "several auth adapters, with what is wrong in each",
			file: "auth:\n- {adapter: oidc, clientID: x}\n- {adapter: oicd}\n- {adapter: oidc, redirectUri: x}\n- {name: B, adapter: static}\n- {issuer: x}\n",
			want: `2: auth[0].clientID: unknown key; did you mean clientId?
3: auth[1].adapter: there is no built-in adapter "oicd", and no plugin of that name in HOME/plugins; did you mean oidc?
4: auth[2].name: "oidc" is already the name of auth[0]; give one of them another name
4: auth[2].redirectUri: must be an address of the form <base URL>/v1/auth/callback
5: auth[3].name: must be lower-case letters, digits and hyphens
6: auth[4].adapter: is required`,
		},
		{name: "an empty list of auth adapters", file: "auth: []\n", want: `1: auth: must have at least 1 entries`},
		{
			name: "registries with the same name, or none",
			file: "registries:\n- {name: a, adapter: directory, folder: x}\n- {adapter: directory, folder: x}\n- {name: a, adapter: directory, folder: y}\n",
			want: `3: registries[1].name: is required
4: registries[2].name: "a" is already the name of registries[0]; give one of them another name`,
		},
		{
			name: "invalid apps",
			file: `apps:
  none: {env: {A: b}}
  both: {path: a, url: http://x}
  System: {path: a}
  system: {path: a}
  ftp: {url: ftp://x}
  user: {url: "https://me:pw@x"}
  env: {url: https://x, env: {A: b}}
  stdio: {path: a, transport: {type: sse}}
  version: {path: a, version: "1"}
  bearer: {url: https://x, transport: {auth: {type: bearer}}}
  header: {url: https://x, transport: {auth: {type: header, name: "a b"}}}
  none2: {url: https://x, transport: {auth: {type: none, token: t}, headers: {"b d": x}}}
  typo: {pth: a}
  half: {protected: true, env: {A: b}}
  alone: {protected: true}
  client: {url: https://x, transport: {auth: {type: bearer, token: t, clientId: c}}}
  secret: {url: https://x, transport: {auth: {type: user, clientSecret: s}}}
  own: {url: https://x, transport: {auth: {type: shared}, headers: {authorization: Bearer x, X-Api-Key: k}}}
  swap: {url: https://x, transport: {auth: {type: exchange, audience: a, tokenUrl: idp.example/token}}}
  swap2: {url: https://x, transport: {auth: {type: user, audience: a}}}
  swap3: {url: https://x, transport: {auth: {type: exchange, audience: a}}}
  bound: {url: https://x, transport: {auth: {type: user, issuer: "https://i"}}}
  bound2: {url: https://x, transport: {auth: {type: exchange, audience: a, tokenUrl: "https://i/token", clientId: c, issuer: "https://i"}}}
`,
			want: `2: apps.none: must be a mapping with exactly one of path, name and url, or with protected, sandbox, installScripts, startTimeoutSeconds or idle alone
3: apps.both: must be a mapping with exactly one of path, name and url, or with protected, sandbox, installScripts, startTimeoutSeconds or idle alone
4: apps.System: must be a server name of lower-case letters, digits and hyphens
5: apps.system: "system" is reserved for the server's own tools; choose another name
6: apps.ftp.url: must be an absolute address that starts with https:// or http://
7: apps.user.url: must not contain a user name or password
8: apps.env.env: a remote server runs no process here that could use environment variables; use transport.headers or transport.auth
9: apps.stdio.transport: requires url
10: apps.version.version: requires name
11: apps.bearer.transport.auth.token: is required
12: apps.header.transport.auth.value: is required
12: apps.header.transport.auth.name: is not a valid HTTP header name
13: apps.none2.transport.auth.token: is used only with the type bearer
13: apps.none2.transport.headers.b d: is not a valid HTTP header
14: apps.typo.pth: unknown key; did you mean path?
15: apps.half: must be a mapping with exactly one of path, name and url, or with protected, sandbox, installScripts, startTimeoutSeconds or idle alone
17: apps.client.transport.auth.clientId: clientId, clientSecret and scopes are used only with the types user, shared and exchange
18: apps.secret.transport.auth.clientSecret: requires clientId
19: apps.own.transport.headers.authorization: would replace the credentials of the call's account; omit it, or use the type bearer or header
20: apps.swap.transport.auth.tokenUrl: must be an absolute address that starts with https:// or http://, without a user name
21: apps.swap2.transport.auth.tokenUrl: tokenUrl and audience are used only with the type exchange
22: apps.swap3.transport.auth.tokenUrl: is required
23: apps.bound.transport.auth.issuer: requires clientId
24: apps.bound2.transport.auth.issuer: is used only with the types user and shared`,
		},
		{
			name: "addresses of all kinds",
			file: "http:\n  host: localhost:80\n  baseUrl: tools.example.com\n  trustedProxies: [10.0.0.0/33, proxy]\n  allowedHosts: ['a b', 'x:99999']\n  allowedOrigins: ['*', 'https://a/', 'app.example.com', 'https://a?x', null]\napiKey: " + key + "\n",
			want: `2: http.host: must be a host name or an address, without a port
3: http.baseUrl: must be an absolute address that starts with https:// or http://
4: http.trustedProxies[0]: must be an address or a network such as 10.0.0.0/8
4: http.trustedProxies[1]: must be an address or a network such as 10.0.0.0/8
5: http.allowedHosts[0]: must be a host or host:port
5: http.allowedHosts[1]: must be a host or host:port
6: http.allowedOrigins[0]: * cannot be combined with credentials; list the origins
6: http.allowedOrigins[1]: must be just an origin, scheme://host[:port], without a path or a trailing slash
6: http.allowedOrigins[2]: must be an origin such as https://app.example.com
6: http.allowedOrigins[3]: must be just an origin, scheme://host[:port], without a path or a trailing slash
6: http.allowedOrigins[4]: must be text, not nothing`,
		},
		{
			name: "addresses without a host, and with an empty port",
			file: "http: {baseUrl: 'https://:443'}\napps:\n  a: {url: 'http://127.0.0.1:'}\n",
			want: `1: http.baseUrl: has no host
3: apps.a.url: has a colon but no port after its host`,
		},
		{
			name: "the environment and the file together",
			file: "mcp: {maxSessions: many}\n",
			env:  Environment{EnvMaxSessions: "0", EnvSessionTTL: "8h", EnvAPIKey: "short", EnvAllowedOrigins: "https://ok,nope"},
			want: `1: mcp.maxSessions: must be a whole number, not text
environment ALLOWED_ORIGINS: http.allowedOrigins[1]: must be an origin such as https://app.example.com
environment MCP_MAX_SESSIONS: mcp.maxSessions: must be at least 1
environment MCP_SESSION_TTL_SECONDS: mcp.sessionTtlSeconds: must be a whole number, not text
environment SERVICE_API_KEY: apiKey: must have at least 8 characters; omit it for dev mode`,
		},
		{
			name: "variables that are not set",
			file: "apiKey: ${env:NOPE}\nlog: {level: '${env:LEVEL}'}\n", env: Environment{"LEVEL": "s3cret"},
			want: `1: apiKey: the environment variable NOPE is not set
2: log.level: must be one of trace, debug, info, warn, error`,
		},
		{
			name: "keys set twice, keys that are not text, merges and tags",
			file: "log: {level: info}\nlog: {level: debug}\n? [a]\n: b\nbase: &b {c: d}\nhttp: {<<: *b}\nfeatures: !!set {}\n",
			want: `2: log: set twice; first on line 1
3: a key must be a string
5: base: unknown key; known names are apiKey, apps, audit, auth, chat, features, http, idle, install, limits, log, mcp, models, plugins, registries, sandbox, sessionStore, skills, storage, tools, views
6: http: << is not part of YAML 1.2; write the keys out, or use an alias for the whole value`,
		},
		{
			name: "environment variables that are not set, each reported once",
			file: "models: {default: '${env:NOPE}', providers: {anthropic: {apiKey: '${env:NOPE}'}}}\nstorage: {url: '${env:NOPE}'}\nregistries: [{name: a, adapter: directory, path: '${env:NOPE}'}]\n",
			want: `1: models.default: the environment variable NOPE is not set
1: models.providers.anthropic.apiKey: the environment variable NOPE is not set
2: storage.url: the environment variable NOPE is not set
3: registries[0].path: the environment variable NOPE is not set`,
		},
		{
			name: "an unknown provider type, reported once",
			file: "models: {default: 'm:x', providers: {m: {type: opnai, baseUrl: 'http://127.0.0.1:1'}}}\n",
			want: `1: models.providers.m.type: "opnai" is not one of anthropic, openai; did you mean openai?`,
		},
		{
			name: "an invalid number of awake apps",
			file: "apps: {maxAwake: -1, maxawake: {protected: true}, A: {protected: true}}\n",
			want: `1: apps.maxAwake: must be at least 0
1: apps.A: must be a server name of lower-case letters, digits and hyphens`,
		},
		{
			name: "invalid idle limits",
			file: "idle: 10\napps: {a: {idle: 0s}, b: {idle: soon}}\n",
			want: `1: idle: must be text, not a number
2: apps.a.idle: must be a duration such as 10m, or never
2: apps.b.idle: must be a duration such as 10m, or never`,
		},
		{name: "not YAML at all", file: "a: b\n  c: [\n", want: `2: not YAML: column 4: at "c:": a ":" is not allowed here; indent this line like its neighbouring keys, look for a missing ":" on the line before, or quote a text that contains ": "`},
		{name: "a list in place of the settings", file: "- a\n", want: `1: must be a mapping of settings`},
		{name: "two documents", file: "log: {}\n---\nlog: {}\n", want: `2: there is a second document; the configuration must be a single document`},
		{name: "a value that contains itself", file: "auth: &a {adapter: oidc, b: *a}\n", want: `1: auth` + strings.Repeat(".b", 32) + `: there are more than 100000 values, or they are nested more than 64 levels deep`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			file := filepath.Join(home, "ropewalk.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			o := Options{Home: home, Environment: c.env}
			builtins(&o)
			_, err := Load(o)
			got := said(t, err)
			got = strings.ReplaceAll(strings.ReplaceAll(got, file+":", ""), home, "HOME")
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// said formats the problems in an error from Load, one per line.
func said(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("the error is a %T, not Problems: %v", err, err)
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func TestAFileThatIsTooLargeIsNotRead(t *testing.T) {
	_, err := load(t, strings.Repeat("# nothing\n", maxFile/10+1), nil)
	if got := said(t, err); !strings.HasSuffix(got, "ropewalk.yaml: is larger than 1048576 bytes") {
		t.Errorf("got %q", got)
	}
}

func TestTheWholeErrorIsReadable(t *testing.T) {
	_, err := load(t, "htp: {}\nlog: {level: x}\n", nil)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || lines[0] != "configuration: 2 problems" || !strings.HasPrefix(lines[1], "  /") {
		t.Errorf("got %q", err)
	}
}

func TestAProblemFoundByAnAdapterGetsItsLine(t *testing.T) {
	c := mustLoad(t, "log: {}\nauth:\n  adapter: mine\n  issuer: nonsense\n  roles:\n    a: king\nsessionStore: redis\nregistries:\n- name: a\n  adapter: b\n  folder: x\n", nil)
	for path, line := range map[string]int{
		c.Auth[0].At + ".issuer": 4, c.Auth[0].At + ".roles.a": 6, c.Auth[0].At + ".missing": 2, c.SessionStore.At + ".url": 7,
		c.Registries[0].At + ".folder": 11, c.Registries[0].At + ".missing": 9, "nowhere.at.all": 0,
	} {
		if p := c.Problem(path, "is wrong"); p.Line != line || p.Source != c.File || p.Path != path {
			t.Errorf("%s: got %v, want line %d", path, p, line)
		}
	}
}

func TestAnInstalledPluginIsAKnownAdapter(t *testing.T) {
	c, err := load(t, "auth: {adapter: okta}", nil, builtins, func(o *Options) {
		plugin := filepath.Join(o.Home, "plugins", "auth-okta")
		if err := errors.Join(os.Mkdir(filepath.Dir(plugin), 0o700), os.WriteFile(plugin, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil || c.Auth[0].Adapter != "okta" {
		t.Fatalf("got %v", err)
	}
}
