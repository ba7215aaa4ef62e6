package main_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

func TestDoctorReportsEachProblemWithItsRemedy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir} // no runtimes to check
	demo := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.dir, "demo"))
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok","uptime":1,"bundles":[]}`))
	}))
	t.Cleanup(server.Close)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"servers": [`))
	}))
	t.Cleanup(broken.Close)
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_, _ = fmt.Fprintf(w, `{"issuer":%[1]q,"jwks_uri":"%[1]s/keys","authorization_endpoint":"%[1]s/authorize","scopes_supported":["openid","email"]}`, provider.URL)
		case "/keys":
			_, _ = w.Write([]byte(`{"keys":[{}]}`))
		case "/down/.well-known/openid-configuration":
			w.WriteHeader(http.StatusBadGateway)
		case "/slash/.well-known/openid-configuration":
			_, _ = fmt.Fprintf(w, `{"issuer":"%[1]s/slash/","jwks_uri":"%[1]s/keys"}`, provider.URL)
		case "/all/.well-known/openid-configuration":
			_, _ = w.Write([]byte(`{"issuer":"https://login.example.com/{tenantid}/v2.0"}`))
		case "/moved/.well-known/openid-configuration":
			http.Redirect(w, r, "http://other.example.com/", http.StatusFound)
		case "/.well-known/oauth-authorization-server/other":
			_, _ = fmt.Fprintf(w, `{"issuer":"%[1]s/other","authorization_endpoint":"%[1]s/authorize"}`, provider.URL)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(provider.Close)
	for name, c := range map[string]struct {
		config string
		says   []string
	}{
		"a setting that does not exist": {"htpt: {port: 1}\n", []string{"configuration", "htpt", "config schema"}},
		"a database that is down":       {"storage: {url: \"postgres://u:canary@127.0.0.1:1/x\"}\n", []string{"database", "connection refused", "storage.url"}},
		"a session store that is down":  {"sessionStore: {adapter: redis, url: \"redis://127.0.0.1:1/0\"}\n", []string{"session store   127.0.0.1:1: connection refused\n"}},
		"an identity provider that is down": {
			"auth: {adapter: oidc, issuer: \"http://127.0.0.1:1\", clientId: x}\n", []string{"identity", "auth.issuer"},
		},
		"an identity provider behind a proxy that cannot reach it": {
			"auth: {adapter: oidc, issuer: \"" + provider.URL + "/down\", clientId: x}\n", []string{"returned 502", "or a proxy in front of it"},
		},
		"an identity provider that the server refuses to connect to": {
			"auth: {adapter: oidc, issuer: \"https://10.255.255.1\", clientId: x}\n", []string{"does not connect to 10.255.255.1", "auth.allowPrivateNetwork: true"},
		},
		"an issuer without its slash": {
			"auth: {adapter: oidc, issuer: \"" + provider.URL + "/slash\", clientId: x}\n", []string{`calls itself "` + provider.URL + `/slash/"`, "including any trailing slash"},
		},
		"the issuer for all tenants": {
			"auth: {adapter: oidc, issuer: \"" + provider.URL + "/all\", clientId: x}\n", []string{"auth.issuer to the issuer of one tenant"},
		},
		"a provider that redirects to another host": {
			"auth: {adapter: oidc, issuer: \"" + provider.URL + "/moved\", clientId: x}\n", []string{"redirects to http://other.example.com", "check auth.issuer"},
		},
		"the domain of a provider": {
			"auth: {adapter: oidc, idpDomain: id.invalid, clientId: x}\n", []string{"https://id.invalid: ", "check auth.issuer"},
		},
		"a provider with the metadata of RFC 8414, and a client for the redirect URI of http.baseUrl that it does not know": {
			"http: {baseUrl: \"http://127.0.0.1:1\"}\nauth: {adapter: oidc, issuer: \"" + provider.URL + "/other\", jwksUri: \"" + provider.URL + "/keys\", clientId: x}\n",
			[]string{"/other, 1 keys", "exactly the redirect URI http://127.0.0.1:1/v1/auth/callback"},
		},
		"a scope that the provider does not offer, and a client that it does not know": {
			"auth: {adapter: oidc, issuer: \"" + provider.URL + "\", clientId: x, redirectUri: \"http://127.0.0.1/v1/auth/callback\", scopes: [openid, profile]}\n",
			[]string{`auth.scopes: the provider does not offer "profile"`, "the provider may have refused the client id"},
		},
		"a plugin that does not exist": {"sessionStore: {adapter: nothing}\n", []string{"nothing"}},
		"a plugin whose file changed": {
			"sessionStore: {adapter: demo, path: " + demo + ", sha256: " + strings.Repeat("0", 64) + "}\n", []string{"does not match its sha256", "restore the original"},
		},
		"a registry that is down": {
			"registries: [{name: official, adapter: mcp-registry, url: \"https://127.0.0.1:1\", allowPrivateNetwork: true}]\n",
			[]string{"registry", "official", "connection refused", "DNS"},
		},
		"a registry whose response is not JSON": {
			"registries: [{name: official, adapter: mcp-registry, url: \"" + broken.URL + "\", allowPrivateNetwork: true}]\n",
			[]string{"registry", "official: " + broken.URL + " responds, but cannot be searched", "the mcp-registry adapter supports"},
		},
		"a port used by another program": {"http: {port: " + port(t, other.URL) + "}\n", []string{"port", "another program is using it", "http.port"}},
		"a port used by another server":  {"http: {port: " + port(t, server.URL) + "}\n", []string{"port", "a Ropewalk server with another home"}},
		"a model that cannot be reached": {"models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \"http://127.0.0.1:1\"}}}\n", []string{"model", "connection refused", "baseUrl"}},
		"a model without a key":          {"models: {default: \"anthropic:x\"}\n", []string{"model", "has no key", "ANTHROPIC_API_KEY", "docs/models.md"}},
		"tabs in the file":               {"http:\n\tport: 1\n", []string{"not YAML", "with spaces"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := s.write("doctor.yaml", c.config)
			out, errs, status := s.split("", "ropewalk", "doctor", "--deep", "--config", file)
			if status != 1 {
				t.Errorf("status %d: %s", status, errs)
			}
			for _, text := range c.says {
				if !strings.Contains(out, text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
			if strings.Contains(out+errs, "canary") {
				t.Error("the output contains a secret")
			}
		})
	}
}

func TestAModelWhoseKeyIsRejectedIsReportedWithTheSetting(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(provider.Close)
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \""+provider.URL+"\", apiKey: canary}}}\n")
	s.up()
	examined := s.run("ropewalk", "doctor", "--deep").exits(1, "status 401", "set models.providers.m.apiKey to a key that the provider accepts")
	if strings.Contains(examined.text, "firewall") {
		t.Error(examined.text)
	}
	s.run("ropewalk", "chat", "hello").exits(1, "does not accept the server's key (models.providers.m.apiKey)")
}

func TestDoctorSaysWhatToDoAboutAnotherMachinesAddress(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	out, _, _ := s.split("", "ropewalk", "doctor", "--host", "nothing.invalid", "--config", s.write("keyed.yaml", "apiKey: 0123456789abcdef\n"))
	if !strings.Contains(out, "error    port            nothing.invalid:27247: ") || !strings.Contains(out, "set http.host or --host to one of this machine's addresses") ||
		strings.Contains(out, "stop the program") {
		t.Error(out)
	}
}

func TestDoctorReportsAHomeThatIsAFile(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	out, _, status := s.split("", "ropewalk", "doctor", "--home", s.write("file", ""))
	if status != 1 || strings.Count(out, "file is not a directory") != 1 || !strings.Contains(out, "→ choose another with --home or ROPEWALK_HOME") || strings.Contains(out, "correct the file") || strings.Contains(out, "socket") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorPrintsASharedRemedyOnce(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	out, _, _ := s.split("", "ropewalk", "doctor", "--config", s.write("doctor.yaml", "a: 1\nb: 2\nc: 3\n"))
	if strings.Count(out, ": unknown key") != 3 || strings.Count(out, "correct the file") != 1 {
		t.Error(out)
	}
}

func TestAnAppWhoseFilesWereChangedIsReportedByDoctorAndAppList(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.up()
	s.bundle(filepath.Join(s.dir, "notes.mcpb"), "notes")
	s.run("ropewalk", "app", "install", "./notes.mcpb").exits(0)
	files, err := filepath.Glob(filepath.Join(s.home, "apps", "notes", "bundle", "*", "manifest.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("ropewalk", "app", "stop", "notes").exits(0)
	s.run("ropewalk", "app", "start", "notes").exits(1, "(manifest.json)")
	if _, errs, status := s.split("", "ropewalk", "app", "list"); status != 0 || !strings.Contains(errs, "notes is stopped: the files of the app were changed") {
		t.Errorf("app list: status %d, %s", status, errs)
	}
	s.run("ropewalk", "doctor").exits(1, "notes of ws_default is stopped: the files of the app were changed", "`ropewalk app uninstall notes` and install it again")
	s.run("ropewalk", "app", "remove", "notes").exits(0)
	if out, _, _ := s.split("", "ropewalk", "doctor"); !strings.Contains(out, "1 running, 0 stopped") || strings.Contains(out, "error ") {
		t.Errorf("without the app, doctor prints\n%s", out)
	}
}

func TestAModelWithoutItsKeyIsASingleFinding(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	file := s.write("keyless.yaml", "models: {default: \"anthropic:x\", fast: \"anthropic:y\"}\n")
	out, errs, status := s.split("", "ropewalk", "doctor", "--config", file)
	if status != 1 || strings.Count(out, "has no key") != 1 || !strings.Contains(out, "models.default and models.fast name the provider anthropic") {
		t.Errorf("doctor: status %d, %s\n%s", status, errs, out)
	}
	_, errs, status = s.split("", "ropewalk", "config", "check", "--config", file)
	if status != 0 || strings.Count(errs, "has no key") != 1 {
		t.Errorf("config check: status %d, %s", status, errs)
	}
}

func TestAModelWithoutItsKeyHidesNothing(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	provider := testenv.StartModelProvider(t)
	provider.Say(t, `{"match":{},"response":{"content":"ok"}}`)
	const fast = "models.fast names the provider anthropic, which has no key"
	for name, c := range map[string]struct {
		models string
		status int
		says   []string
	}{
		"no default":                       {`{fast: "anthropic:y"}`, 0, []string{"warning  model", "no model is configured", fast}},
		"another default":                  {`{default: "m:x", fast: "anthropic:y", providers: {m: {type: openai, baseUrl: "` + provider.URL + `/v1", apiKey: k}}}`, 0, []string{fast, "m:x responds"}},
		"a price file that does not exist": {`{default: "anthropic:x", prices: ` + s.dir + `/none.json}`, 1, []string{"models.default names the provider anthropic, which has no key", "none.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := s.split("", "ropewalk", "doctor", "--deep", "--config", s.write("models.yaml", "http: {port: 0}\nmodels: "+c.models+"\n"))
			if status != c.status || strings.Count(out, "has no key") != 1 {
				t.Errorf("status %d, %s\n%s", status, errs, out)
			}
			for _, text := range c.says {
				if !strings.Contains(out, text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
		})
	}
}

func TestDoctorExaminesThePortOfTheFlag(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	out, _, status := s.split("", "ropewalk", "doctor", "--port", port(t, other.URL))
	if status != 1 || !strings.Contains(out, "127.0.0.1:"+port(t, other.URL)+": another program is using it") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestAHomeThatCannotBeCreatedIsReportedWithARemedy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	const home = "/proc/nohome" // even root cannot create a directory there
	for _, line := range [][]string{{"doctor"}, {"up", "--port", "0"}, {"serve", "--port", "0"}, {"config", "init"}} {
		out, errs, status := s.split("", append(append([]string{"ropewalk"}, line...), "--home", home)...)
		for _, text := range []string{"the home /proc/nohome cannot be created: ", "write to /proc", "choose another home with --home or ROPEWALK_HOME"} {
			if status != 1 || !strings.Contains(out+errs, text) {
				t.Errorf("%s: status %d, %q is missing in\n%s%s", line, status, text, out, errs)
			}
		}
	}
}

func TestAnUnwritableHomeIsReportedWithARemedy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	program := install(t, filepath.Join(built, "ropewalk"), filepath.Join(s.dir, "ropewalk"))
	var ordinary *syscall.SysProcAttr
	if os.Geteuid() == 0 { // root can write anywhere
		ordinary = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	for _, dir := range []string{filepath.Dir(s.dir), s.dir} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says := func(mode os.FileMode, texts ...string) {
		if err := os.Chmod(s.home, mode); err != nil {
			t.Fatal(err)
		}
		for _, line := range [][]string{{"up", "--port", "0"}, {"serve", "--port", "0"}, {"config", "init"}} {
			cmd := s.command(program, line...)
			cmd.SysProcAttr = ordinary
			out, err := cmd.CombinedOutput()
			for _, text := range append(texts, "permission denied", "let this user (id ", "or choose another home with --home or ROPEWALK_HOME") {
				if err == nil || !strings.Contains(string(out), text) {
					t.Errorf("%s with mode %o: %v, %q is missing in\n%s", line, mode, err, text, out)
				}
			}
		}
	}
	says(0o555, "cannot write to the home "+s.home+": ", "mode 555")
	says(0) // the configuration cannot be read either
	doctor := s.command(program, "doctor")
	doctor.SysProcAttr = ordinary
	out, err := doctor.CombinedOutput()
	if err == nil || strings.Count(string(out), "error  ") != 1 || !strings.Contains(string(out), "home            cannot access "+s.home+": permission denied") {
		t.Errorf("doctor, with a home that cannot be entered: %v\n%s", err, out)
	}
	if err := os.Chmod(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestAReplacedPluginFileCausesAWarningWhileItsCopyServes(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	demo := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.dir, "demo"))
	sum := s.run("ropewalk", "plugin", "info", demo).exits(0).row("sha256")[1]
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "sessionStore: {adapter: demo, path: "+demo+", sha256: "+sum+"}\n")
	s.up()
	change(t, demo)
	says := []string{
		"ropewalk.yaml:1: sessionStore.path: the file " + demo + " was replaced: its sha256 is ", ", not " + sum, "The server starts " + s.home,
		"put the file back, or set sha256 to the new file's and run `ropewalk reload`",
	}
	_, errs, status := s.split("", "ropewalk", "config", "check")
	out, _, examined := s.split("", "ropewalk", "doctor")
	for _, text := range says {
		if status != 0 || !strings.Contains(errs, text) {
			t.Errorf("config check: status %d, %q is missing in\n%s", status, text, errs)
		}
		if examined != 0 || !strings.Contains(out, text) {
			t.Errorf("doctor: status %d, %q is missing in\n%s", examined, text, out)
		}
	}
	if !strings.HasPrefix(errs, "warning: ") || !strings.Contains(out, "warning  adapters") {
		t.Errorf("not a warning:\n%s\n%s", errs, out)
	}
	s.run("ropewalk", "plugin", "verify").exits(1, "changed")
	copies, err := filepath.Glob(filepath.Join(s.home, "plugins", ".sessionstore-demo.*"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	if err := os.Remove(copies[0]); err != nil {
		t.Fatal(err)
	}
	s.run("ropewalk", "config", "check").exits(1, "content does not match its sha256") // there is no accepted copy left to start
}

func TestDoctorReportsAMissingProgramAndFolder(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	folder, program := filepath.Join(s.dir, "registry"), filepath.Join(s.dir, "program")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	install(t, filepath.Join(built, "ropewalk"), program)
	config := "registries: [{name: here, adapter: directory, dir: " + folder + "}]\n"
	if err := os.WriteFile(filepath.Join(s.home, "ropewalk.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.up()
	bundle := filepath.Join(s.dir, "gone")
	if err := os.Mkdir(bundle, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("gone/manifest.json", `{"manifest_version":"0.3","name":"@test/gone","version":"1.0.0","description":"x","author":{"name":"x"},`+
		`"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"`+program+`","args":["sample"]}}}`)
	s.run("ropewalk", "app", "install", bundle).exits(0)
	s.run("ropewalk", "app", "stop", "gone").exits(0)
	if err := errors.Join(os.Remove(program), os.Remove(folder)); err != nil {
		t.Fatal(err)
	}
	s.run("ropewalk", "app", "start", "gone").exits(1, "program not found: "+program)
	out, _, status := s.split("", "ropewalk", "doctor")
	for _, text := range []string{
		"program not found: " + program, "install or restore the program", "the server's PATH, " + os.Getenv("PATH"),
		"registries[0].dir: cannot be read: stat " + folder, "create, mount or restore it, or correct the setting",
	} {
		if status != 1 || !strings.Contains(out, text) {
			t.Errorf("status %d, %q is missing in\n%s", status, text, out)
		}
	}
}

// port returns the port in an address.
func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func TestDoctorReportsAFileThatARegistrySkips(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	folder := filepath.Join(s.dir, "bundles")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(folder, "broken-1.0.0.mcpb"), "no zip file")
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "registries: [{name: ours, adapter: directory, dir: "+folder+"}]\n")
	out, _, status := s.split("", "ropewalk", "doctor")
	if status != 0 || !strings.Contains(out, "warning  registry        ours: broken-1.0.0.mcpb is skipped: ") || !strings.Contains(out, "ours: a folder with 0 bundles") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorReportsADamagedDatabase(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir}
	if err := os.WriteFile(filepath.Join(s.home, "ropewalk.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, status := s.split("", "ropewalk", "doctor")
	if status != 1 || !strings.Contains(out, "is damaged or is not a database") || !strings.Contains(out, "`ropewalk restore FILE --replace`") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorReportsAnUnwritableHome(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	out, _, status := s.split("", "ropewalk", "doctor", "--home", "/proc/self")
	if status != 1 || !strings.Contains(out, "cannot write to /proc/self") || !strings.Contains(out, "ROPEWALK_HOME") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestDoctorStartsALoginAtTheIdentityProvider(t *testing.T) {
	t.Parallel()
	const callback = "http://127.0.0.1:1/v1/auth/callback"
	provider := testenv.StartOpenIDProvider(t, callback)
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir} // no runtimes to check
	for client, want := range map[string]string{
		"clientId: ropewalk, redirectUri: \"" + callback + "\"":                           "accepts the client id and the redirect URI",
		"clientId: nobody, redirectUri: \"" + callback + "\"":                             "register auth.clientId",
		"clientId: ropewalk, redirectUri: \"https://tools.example.com/v1/auth/callback\"": "exactly the redirect URI",
	} {
		file := s.write("doctor.yaml", "auth: {adapter: oidc, issuer: \""+provider.Issuer+"\", "+client+"}\n")
		out, _, _ := s.split("", "ropewalk", "doctor", "--config", file)
		if !strings.Contains(out, "login ") || !strings.Contains(out, want) {
			t.Errorf("%s: %q is missing in\n%s", client, want, out)
		}
	}
}

func TestTheSupportBundleContainsNoSecrets(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"SERVICE_API_KEY=canary-canary-canary"}
	file := s.write("ropewalk.yaml", "storage: {url: \"postgres://u:canary@127.0.0.1:1/x\"}\n")
	path := filepath.Join(s.dir, "support.zip")
	_, _, _ = s.split("", "ropewalk", "doctor", "--config", file, "--bundle", path)
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if len(archive.File) < 3 {
		t.Errorf("%d parts", len(archive.File))
	}
	for _, part := range archive.File {
		r, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "canary") {
			t.Errorf("%s contains a secret: %s", part.Name, text.String())
		}
	}
}

func TestConfigCheckChecksAdaptersDespiteOtherProblems(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	missing := filepath.Join(s.dir, "missing")
	file := s.write("check.yaml", "htpt: {port: 1}\nregistries: [{name: here, adapter: directory, dir: "+missing+"}]\nsessionStore: {adapter: redis, url: [1]}\n")
	checked := s.run("ropewalk", "config", "check", "--config", file).exits(1, "3 problems", "htpt", "registries[0].dir", missing)
	if strings.Count(checked.text, "sessionStore") != 1 {
		t.Errorf("a setting is reported twice:\n%s", checked.text)
	}
}
