package plugins_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestAnExecutablesNameOmitsThePlatform(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"auth-okta": "auth-okta", "auth-okta_linux_amd64": "auth-okta", "auth-okta-darwin-arm64": "auth-okta", "auth-okta.exe": "auth-okta",
		"auth-okta-windows-x86_64.exe": "auth-okta", "auth-okta_1.2.0_linux_aarch64": "auth-okta_1.2.0", "audit-linux-journal": "audit-linux-journal",
		"sessionstore-linuxkv": "sessionstore-linuxkv", "registry-mine-linux": "registry-mine",
	} {
		if got := plugins.WithoutPlatform(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
