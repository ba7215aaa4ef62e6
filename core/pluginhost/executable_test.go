package pluginhost_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

func TestAnExecutableIsNamedAfterItsFileAndHashedAsItIs(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{
		"sessionstore-redis": "redis", "demo": "demo", "auth-My_Adapter.py": "my-adapter", "registry-.exe": "plugin", "Straße": "stra-e",
	} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("content"), 0o755); err != nil {
			t.Fatal(err)
		}
		p, err := pluginhost.Executable(path)
		if err != nil || p.Adapter != want || p.Path != path || !strings.HasPrefix(p.SHA256, "ed7002b439e9ac845f22357d822bac14") {
			t.Errorf("%s: got %+v, %v; want the name %q", file, p, err, want)
		}
	}
	if _, err := pluginhost.Executable(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that does not exist has a sha256")
	}
}

func TestAPluginIsIdentifiedRegardlessOfItsFileName(t *testing.T) {
	dir := t.TempDir()
	third, _ := thirdParty(t, dir)
	alias := filepath.Join(dir, "auth-misnamed")
	script := "#!/bin/sh\nexec -a " + third + " " + third + "\n"
	if err := os.WriteFile(alias, []byte(strings.Replace(script, "/bin/sh", "/bin/bash", 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	for _, path := range []string{third, alias} {
		p, err := pluginhost.Executable(path)
		if err != nil {
			t.Fatal(err)
		}
		who, err := h.Identify(t.Context(), p)
		if err != nil || who.Kind != plugins.KindSessionStore || who.Name != "third" || who.ProtocolVersion != 1 || !slices.Equal(who.ProtocolVersions, []int{1}) {
			t.Errorf("%s: got %+v, %v", path, who, err)
		}
	}
	p, err := pluginhost.Executable(third)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Identify(t.Context(), p, plugins.KindAuth)
	says(t, err, "of kind sessionstore", "of kind auth")
}

func TestAnExecutableThatIsNotAPluginIsReported(t *testing.T) {
	p, err := pluginhost.Executable("/bin/false")
	if err != nil {
		t.Fatal(err)
	}
	_, err = newHost(t).Identify(t.Context(), p)
	says(t, err, "/bin/false", "exited before it was ready", "does not serve any of [sessionstore auth registry audit]")
}
