package main_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// This test covers the life cycle of a plugin on a real server: it is installed from a URL with a signature,
// verified and removed.
func TestAPluginIsInstalledVerifiedUsedAndRemoved(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	content, err := os.ReadFile(filepath.Join(built, "sessionstore-memory"))
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signature := minisign.Sign(private, content)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sessionstore-third":
			_, _ = w.Write(content)
		case "/sessionstore-third.minisig":
			_, _ = w.Write(signature)
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	url := web.URL + "/sessionstore-third"
	configuration := filepath.Join(s.home, "ropewalk.yaml")
	signed := "plugins: {requireSignature: true, trustedKeys: [\"" + public.String() + "\"]}\n"

	// The configuration names the plugin before it is installed.
	s.write(configuration, "sessionStore: third\nhttp: {port: 0}\n"+signed)
	s.run("ropewalk", "config", "check").exits(1, "no plugin of that name")
	s.run("ropewalk", "plugin", "install", url, "--name", "third").exits(0, "sessionstore-third", "has been installed", public.String(), web.URL)
	s.run("ropewalk", "plugin", "verify").exits(0, "ok", public.String(), url)
	s.run("ropewalk", "config", "check").exits(0)
	s.serve()
	if row := s.run("ropewalk", "plugin", "list").exits(0).row("sessionstore", "third"); row[5] != "running" {
		t.Errorf("the plugin is listed as %v", row)
	}
	s.run("ropewalk", "plugin", "remove", "sessionstore-third").exits(1, "is used by sessionStore", "--force")

	// An unsigned file is not started, even if someone accepts it.
	install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.home, "plugins", "sessionstore-fourth"))
	s.run("ropewalk", "plugin", "verify", "--accept", "sessionstore-fourth").exits(1, "unsigned", "plugin install")
	s.write(configuration, "sessionStore: fourth\nhttp: {port: 0}\n"+signed)
	s.run("ropewalk", "config", "check").exits(1, "plugins.requireSignature is set")
	s.write(configuration, "sessionStore: fourth\nhttp: {port: 0}\n")
	s.run("ropewalk", "config", "check").exits(0)

	s.run("ropewalk", "plugin", "remove", "sessionstore-third").exits(0, "has been removed")
	s.run("ropewalk", "plugin", "remove", "sessionstore-fourth", "--force").exits(0, "has been removed")
	if left, err := filepath.Glob(filepath.Join(s.home, "plugins", "sessionstore-*")); err != nil || len(left) != 0 {
		t.Errorf("remaining: %v, %v", left, err)
	}
	if lock, err := os.ReadFile(filepath.Join(s.home, "plugins.lock")); err != nil || strings.Contains(string(lock), "sessionstore") {
		t.Errorf("the lock file is %s, %v", lock, err)
	}
}
