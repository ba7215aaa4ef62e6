package apps

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// A bundle is third-party code. Its environment contains only variables that programs need, and the variables set by
// the person who installed the bundle.
func TestABundleSeesNothingOfTheServersEnvironment(t *testing.T) {
	t.Parallel()
	names := []string{
		"AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "DATABASE_URL", "GITHUB_TOKEN", "NODE_OPTIONS", "LD_LIBRARY_PATH", "PYTHONPATH",
		"SSH_AUTH_SOCK", "HTTPS_PROXY", "ROPEWALK_SECRET", "USER", "SHELL", "PWD_OF_SOMEONE", "PATH_TO_SECRETS", "LANGUAGE_KEY",
	}
	for i := len(names); i < 50; i++ {
		names = append(names, fmt.Sprintf("CANARY_%d", i))
	}
	environ := []harness.Option{harness.Env("SERVICE_API_KEY=" + harness.APIKey + "-canary")}
	for _, name := range names {
		environ = append(environ, harness.Env(name+"=canary-"+name))
	}
	s := harness.Serve(t, environ...)
	key := "Authorization: Bearer " + harness.APIKey + "-canary"
	install := map[string]any{"path": harness.GoBundle(t, "curious", harness.Plain), "env": map[string]any{"GIVEN": "by the installer"}}
	if a := s.Do(t, "POST", "/v1/apps/install", install, key); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a := s.Do(t, "POST", "/v1/tools/call", `{"server":"curious","tool":"environment"}`, key)
	inside, ok := a.Object(t)["result"].(map[string]any)
	if a.Status != 200 || !ok || strings.Contains(a.Body, "canary") {
		t.Errorf("the bundle sees %d %s", a.Status, a.Body)
	}
	var seen []string
	for _, variable := range inside["variables"].([]any) {
		name, value, _ := strings.Cut(variable.(string), "=")
		if seen = append(seen, name); name == "HOME" && !strings.HasPrefix(value, s.Home) || name == "GIVEN" && value != "by the installer" {
			t.Errorf("%s is %s", name, value)
		}
	}
	slices.Sort(seen)
	if want := []string{"GIVEN", "HOME", "LANG", "PATH", "ROPEWALK_DATA_DIR", "TMPDIR"}; !slices.Equal(seen, want) {
		t.Errorf("the bundle sees %v, want %v", seen, want)
	}
}

func TestClientInfoHasTheServersNameAndVersion(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "curious", harness.Plain)})
	inside, _ := s.Call(t, "curious", "environment", nil).(map[string]any)
	client, _ := inside["client"].(map[string]any)
	if version, _ := client["version"].(string); client["name"] != "ropewalk" || version == "" {
		t.Errorf("clientInfo is %v", inside["client"])
	}
}
