package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// readmeExample returns the README's configuration with an OpenID Connect provider. The replacements are pairs: a
// string in the example, and the string to use instead, such as an address on this machine.
func readmeExample(t *testing.T, replacements ...string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(testenv.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		if !strings.Contains(block[1], "adapter: oidc") {
			continue
		}
		example := block[1]
		for i := 0; i < len(replacements); i += 2 {
			if !strings.Contains(example, replacements[i]) {
				t.Fatalf("the README's example has no %q:\n%s", replacements[i], example)
			}
			example = strings.ReplaceAll(example, replacements[i], replacements[i+1])
		}
		return example
	}
	t.Fatal("the README has no example with adapter: oidc")
	return ""
}

// serveReadme starts a server with the README's example and an empty home.
func serveReadme(t *testing.T) *harness.Server {
	t.Helper()
	port := testenv.FreePort(t)
	at := fmt.Sprintf("http://localhost:%d", port)
	provider := testenv.StartOpenIDProviderWithForm(t, at+"/v1/auth/callback")
	bundles := t.TempDir()
	s := harness.Serve(t, harness.Flags("--port", strconv.Itoa(port)), harness.Config(readmeExample(t,
		"host: 0.0.0.0", "host: localhost",
		"https://tools.example.com", at,
		"https://id.example.com", provider.Issuer,
		"redis://127.0.0.1:6379/0", "redis://"+testenv.StartRedis(t).Addr+"/0",
		"/srv/bundles/filesystem.mcpb", named(t, everything(t), "filesystem"),
		"/srv/bundles", bundles,
		"  - {name: official, adapter: mcp-registry}\n", "", // the tests must not depend on this registry
	)))
	s.URL = at
	testkit.Eventually(t, "the declared app is running", func() bool {
		bundles, _ := s.Object(t, "GET", "/v1/health", nil)["bundles"].([]any)
		return len(bundles) == 1 && bundles[0].(map[string]any)["state"] == "running"
	})
	return s
}

// named changes the name of the bundle in a directory to @test/name, and returns the directory.
func named(t *testing.T, dir, name string) string {
	t.Helper()
	manifest := filepath.Join(dir, "manifest.json")
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	write(t, manifest, strings.Replace(string(content), "@test/everything", "@test/"+name, 1))
	return dir
}

func TestTheOpenIDExampleInTheREADMELogsAnAdminIn(t *testing.T) {
	t.Parallel()
	s := serveReadme(t)
	home, err := os.MkdirTemp("", "rwc") // a short path, because the browser creates sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	facts, err := json.Marshal(map[string]string{"url": s.URL, "chromium": testenv.Program(t, "chromium"), "profile": filepath.Join(home, "profile")})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("login.mjs")
	if err != nil {
		t.Fatal(err)
	}
	program(t, packages(t), []string{"HOME=" + home, "TMPDIR=" + home}, "node", script, string(facts))
	if !strings.Contains(s.Log.String(), "browser login failed") {
		t.Error("the log should contain the reason for the failed login")
	}
}

// In this test, the provider puts the name and the email only into UserInfo and not into the ID token. OpenID Connect
// Core 5.4 prescribes this if an access token is issued.
func TestAUserHasANameAndEmailEvenIfOnlyUserInfoProvidesThem(t *testing.T) {
	t.Parallel()
	s := serveReadme(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(url string) (at, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		content, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", url, resp.StatusCode, content, err)
		}
		return resp.Request.URL.String(), string(content)
	}
	form, _ := get(s.URL + "/v1/auth/authorize")
	get(form + "?account=bob")
	if _, session := get(s.URL + "/v1/auth/session"); !strings.Contains(session, `"email":"bob@example.com","displayName":"Bob","orgRole":"member"`) {
		t.Errorf("%s", session)
	}
}

func TestAClientThatKnowsOnlyTheURLListsAndCallsToolsAfterAnOAuthLogin(t *testing.T) {
	t.Parallel()
	s := serveReadme(t)
	script, err := filepath.Abs("url-only.mjs")
	if err != nil {
		t.Fatal(err)
	}
	out := program(t, packages(t), nil, "node", script, s.URL+"/mcp/me")
	var seen struct {
		Scope, Resource, Echoed string
		Tools                   []string
	}
	if err := json.Unmarshal([]byte(out), &seen); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(seen.Scope, "openid") || !strings.Contains(seen.Scope, "email") || seen.Resource != s.URL+"/mcp/me" {
		t.Errorf("the client asked for scope %q and resource %s", seen.Scope, seen.Resource)
	}
	if !slices.Contains(seen.Tools, "filesystem__echo") || seen.Echoed != "Echo: text" {
		t.Errorf("the client lists %v; the tool returned %q", seen.Tools, seen.Echoed)
	}
}

// packageManagerEnvironment returns the environment variables that tell package managers where packages come from and which
// certificates to trust.
func packageManagerEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return !slices.ContainsFunc([]string{"NPM_CONFIG_", "SSL_CERT_", "NODE_EXTRA_CA_CERTS"}, func(prefix string) bool {
			return strings.HasPrefix(variable, prefix)
		})
	})
}

// The definition is from the documentation of server-everything. People copy it into their clients' configuration.
func TestAPastedDefinitionOfServerEverythingIsImportedAndAnswersACall(t *testing.T) {
	t.Parallel()
	s := serve(t, "", packageManagerEnvironment()...)
	pasted := json.RawMessage(`{"everything":{"command":"npx","args":["-y","@modelcontextprotocol/server-everything"]}}`)
	plan := s.Object(t, "POST", "/v1/apps/import", map[string]any{"dryRun": true, "mcpServers": pasted})
	if server := plan["servers"].([]any)[0].(map[string]any); server["status"] != "planned" || server["version"] == nil {
		t.Errorf("the plan is %v", plan)
	}
	done := s.Object(t, "POST", "/v1/apps/import", map[string]any{"mcpServers": pasted})
	server := done["servers"].([]any)[0].(map[string]any)
	version, _ := server["version"].(string)
	if server["status"] != "installed" || !regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(version) {
		t.Fatalf("the import returned %v", done)
	}
	result := s.Object(t, "POST", "/v1/tools/call", map[string]any{"server": "everything", "tool": "get-sum", "arguments": map[string]any{"a": 46, "b": 2}})
	if result["isError"] != false || !strings.Contains(fmt.Sprint(result["result"]), "48") {
		t.Errorf("the tool returned %v", result)
	}
	if app := s.Object(t, "GET", "/v1/apps/everything", nil); app["version"] != version {
		t.Errorf("installed %v, imported %s", app["version"], version)
	}
}
