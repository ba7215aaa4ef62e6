package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config/schema"
)

func loadText(t *testing.T, text string, env Environment, adapters ...schema.Adapter) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ropewalk.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Options{Path: file, Home: t.TempDir(), Environment: env, Adapters: adapters})
}

func TestAValueFromTheEnvironmentIsReadAsItsSettingsType(t *testing.T) {
	env := Environment{"PORT": "8123", "ON": "false", "KEY": "0123456789012345", "HOST": "localhost", "N": "7"}
	adapter := schema.Adapter{Kind: "sessionstore", Name: "x", Settings: json.RawMessage(`{"type":"object","properties":{"limit":{"type":"integer"}}}`)}
	c, err := loadText(t, `
http: {host: "${env:HOST}", port: "${env:PORT}"}
apiKey: ${env:KEY}
features: {mcpServer: "${env:ON}"}
sessionStore: {adapter: x, limit: "${env:N}"}
`, env, adapter)
	if err != nil {
		t.Fatal(err)
	}
	if c.HTTP.Port != 8123 || c.HTTP.Host != "localhost" || c.Features.Enabled(FlagMCPServer) || c.APIKey.Reveal() != "0123456789012345" {
		t.Errorf("%+v %+v", c.HTTP, c.Features)
	}
	if got := string(c.SessionStore.Settings.JSON()); got != `{"limit":7}` {
		t.Errorf("the adapter gets %s", got)
	}
}

func TestAValueFromTheEnvironmentThatIsNotANumberIsRefusedWithItsPlace(t *testing.T) {
	_, err := loadText(t, "http:\n  port: ${env:PORT}\n", Environment{"PORT": "eighty"})
	if err == nil || !strings.Contains(err.Error(), "http.port") || strings.Contains(err.Error(), "eighty") {
		t.Errorf("%v", err)
	}
}

func TestAnEmptyEnvironmentVariableIsTreatedAsUnset(t *testing.T) {
	c, err := loadText(t, "http: {allowedOrigins: [https://a.example]}\n", Environment{
		EnvAPIKey: "", EnvAllowedOrigins: "", EnvMaxSessions: "", EnvSessionTTL: "", EnvStorageURL: "",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Dev() || len(c.AllowedOrigins) != 1 || !strings.Contains(strings.Join(c.Warnings, "\n"), EnvAPIKey+" is empty") {
		t.Errorf("dev %v, origins %v, warnings %q", c.Dev(), c.AllowedOrigins, c.Warnings)
	}
}

func TestAMissingSkillsDirectoryCausesAWarning(t *testing.T) {
	c, err := loadText(t, "skills: {directories: [nowhere]}\n", nil)
	if err != nil || !strings.Contains(strings.Join(c.Warnings, "\n"), "skills.directories[0]") {
		t.Errorf("%v, warnings %q", err, c.Warnings)
	}
}

func TestAuthAdminsAndJoinAreServerSettings(t *testing.T) {
	c, err := loadText(t, "auth: {adapter: x, admins: [Alice@Example.com, sub-1], join: {workspace: default}, issuer: i}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(c.Auth[0].Admins, " ") != "Alice@Example.com sub-1" || !slices.Equal(c.Auth[0].Join, []Join{{Workspace: "ws_default", Role: "member"}}) {
		t.Errorf("%+v", c.Auth)
	}
	if got := string(c.Auth[0].Settings.JSON()); got != `{"issuer":"i"}` {
		t.Errorf("the adapter gets %s", got)
	}
}

func TestAuthJoinMayNameAWorkspaceForEachGroup(t *testing.T) {
	c, err := loadText(t, "auth: {adapter: x, join: [{}, {group: eng, workspace: ws_a}, {group: eng, role: admin}]}\n", nil)
	want := []Join{{"", "ws_default", "member"}, {"eng", "ws_a", "member"}, {"eng", "ws_default", "admin"}}
	if err != nil || !slices.Equal(c.Auth[0].Join, want) {
		t.Errorf("%v %+v", err, c)
	}
	for text, at := range map[string]string{
		"[{}, {role: admin}]": "auth.join[1]",
		"[{group: a, workspace: ws_a}, {group: a, workspace: ws_a}]": "auth.join[1]",
		"[{group: a, rule: admin}]":                                  "auth.join[0].rule",
		"{group: a, role: king}":                                     "auth.join.role",
		"[{group: \"\"}]":                                            "auth.join[0].group",
		"[]":                                                         "auth.join",
	} {
		if _, err := loadText(t, "auth: {adapter: x, join: "+text+"}\n", nil); err == nil || !strings.Contains(err.Error(), at+":") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLimitsAreOnExceptInDevMode(t *testing.T) {
	c, err := loadText(t, "apiKey: a-key-of-sixteen-or-more\nlimits: {streams: 3}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Streams != 3 || c.Limits.Sessions != 50 || c.Limits.CallsPerSecond != 5000 || c.Limits.ConnectionsPerAddress != 256 {
		t.Errorf("%v %+v", err, c.Limits)
	}
	dev, err := loadText(t, "limits: {streams: 3}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if dev.Limits.Streams != 3 || dev.Limits.Sessions != 0 || dev.Limits.CallsPerSecond != 0 || dev.Limits.APIBodyBytes != 1<<20 || dev.Limits.AnswerBytes != 16<<20 {
		t.Errorf("dev mode: %v %+v", err, dev.Limits)
	}
}

func TestAuthMayBeAListOfAdapters(t *testing.T) {
	c, err := loadText(t, "auth:\n- {adapter: x, issuer: i, admins: [a@example.com], join: {}}\n- {name: second, adapter: x, audience: any}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Auth) != 2 || c.Dev() || c.Auth[0].Name != "x" || c.Auth[1].Name != "second" || c.Auth[1].At != "auth[1]" {
		t.Fatalf("%+v", c.Auth)
	}
	if first := c.Auth[0]; !slices.Equal(first.Join, []Join{{Workspace: "ws_default", Role: "member"}}) || len(first.Admins) != 1 || first.AnyAudience || string(first.Settings.JSON()) != `{"issuer":"i"}` {
		t.Errorf("%+v", first)
	}
	if second := c.Auth[1]; len(second.Join) != 0 || len(second.Admins) != 0 || !second.AnyAudience || string(second.Settings.JSON()) != `{}` {
		t.Errorf("%+v", second)
	}
}
