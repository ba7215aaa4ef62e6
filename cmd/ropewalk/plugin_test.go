package main_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestPluginListWithoutAServerShowsWhatCanBeConfigured(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	install(t, filepath.Join(built, "auth-oidc"), filepath.Join(s.home, "plugins", "auth-okta"))
	s.write(filepath.Join(s.home, "plugins", "SHA256SUMS"), "")
	list := s.run("ropewalk", "plugin", "list").exits(0, "No server is using the home "+s.home)
	if row := list.row("sessionstore", "redis"); row[3] != "-" || row[5] != "built-in" {
		t.Errorf("a built-in is listed as %v", row)
	}
	if row := list.row("auth", "okta"); row[3] != filepath.Join(s.home, "plugins", "auth-okta") || row[5] != "installed" {
		t.Errorf("an installed plugin is listed as %v", row)
	}
	if strings.Contains(list.text, "SHA256SUMS") {
		t.Errorf("a file that is not a plugin is listed:\n%s", list.text)
	}
}

func TestPluginListShowsTheStateOfEachPlugin(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	path := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.home, "plugins", "sessionstore-third"))
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "sessionStore: third\nhttp: {port: 0}\n")
	s.serve()

	row := s.run("ropewalk", "plugin", "list").exits(0).row("sessionstore", "third")
	pid, err := strconv.Atoi(row[6])
	if err != nil || row[3] != path || row[5] != "running" || row[7] != "0" || row[len(row)-1] != "-" {
		t.Fatalf("the plugin is listed as %v", row)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the plugin is listed as running again", func() bool {
		row = s.run("ropewalk", "plugin", "list").exits(0).row("sessionstore", "third")
		return row[5] == "running" && row[7] == "1"
	})
	if last := strings.Join(row[8:], " "); row[6] == strconv.Itoa(pid) || !strings.Contains(last, "signal killed") {
		t.Errorf("its replacement is listed as %v", row)
	}
}

// serve starts the server with the script's home, and waits until it responds.
func (s *script) serve(flags ...string) {
	s.t.Helper()
	cmd := s.command("ropewalk", append([]string{"serve"}, flags...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines, answers := bufio.NewScanner(log), false
	for !answers && lines.Scan() {
		answers = strings.Contains(lines.Text(), "server listening")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			continue
		}
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-drained
		_ = cmd.Wait()
	})
	if !answers {
		s.t.Fatal("the server did not answer")
	}
}

func TestPluginInfoDetectsThePluginsKind(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	alias := install(t, filepath.Join(built, "auth-oidc"), filepath.Join(s.dir, "okta.v2"))
	info := s.run("ropewalk", "plugin", "info", "./okta.v2").exits(0)
	for field, want := range map[string]string{
		"kind": "auth", "name": "oidc", "protocols": "1", "capabilities": "configure, login, sessions, validate", "path": alias,
	} {
		if got := strings.Join(info.row(field)[1:], " "); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	s.run("ropewalk", "plugin", "info", "--kind", "registry", alias).exits(1, "of the kind auth", "of the kind registry")
	s.run("ropewalk", "plugin", "info", "--kind", "hat", alias).exits(1, `--kind is "hat"`)
	s.run("ropewalk", "plugin", "info", "./none").exits(1, "no such file")
	s.run("ropewalk", "plugin", "info", "/bin/false").exits(1, "does not serve any of [sessionstore auth registry audit]")
}

func TestPluginInfoDoesNotStartAnInstalledPluginThatHasChanged(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.home, "plugins", "sessionstore-third"))
	s.run("ropewalk", "plugin", "info", "third").exits(0, "sha256")
	s.run("ropewalk", "plugin", "verify", "--accept", "sessionstore-third").exits(0)
	s.run("ropewalk", "plugin", "info", "third").exits(0, "sha256")
	ran := filepath.Join(s.dir, "ran")
	rewrite(t, file, "#!/bin/sh\n: >"+ran+"\n")
	s.run("ropewalk", "plugin", "info", "third").exits(1, "sessionstore-third", "its file has changed since it was accepted", "plugin verify --accept sessionstore-third")
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Errorf("the changed file was executed: %v", err)
	}
}

func TestPluginInfoPrefersTheBuiltInAdapterWithTheName(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := install(t, filepath.Join(built, "auth-static"), filepath.Join(s.home, "plugins", "auth-oidc"))
	for _, name := range []string{"oidc", "auth-oidc"} {
		said := s.run("ropewalk", "plugin", "info", name).exits(0, "specify its path, "+file)
		if row := said.row("path"); strings.Join(row, " ") != "path built in" {
			t.Errorf("%s is %v", name, row)
		}
	}
	s.run("ropewalk", "plugin", "info", file).exits(0, "static")
	install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.home, "plugins", "sessionstore-oidc"))
	s.run("ropewalk", "plugin", "info", "oidc").exits(2, "give --kind auth or --kind sessionstore")
}

func TestPluginVerifyComparesEveryPluginWithItsChecksum(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "verify").exits(0)
	file := install(t, filepath.Join(built, "sessionstore-memory"), filepath.Join(s.home, "plugins", "sessionstore-third"))
	if row := s.run("ropewalk", "plugin", "verify").exits(0).row(file); row[1] != "unknown" {
		t.Errorf("before its first use: %v", row)
	}
	s.run("ropewalk", "plugin", "verify", "--accept", "sessionstore-third").exits(0, "is accepted").row(file, "ok")

	change(t, file)
	s.run("ropewalk", "plugin", "verify").exits(1, "1 of 1 plugins").row(file, "changed")
	s.run("ropewalk", "plugin", "verify", "--accept", "sessionstore-third").exits(0).row(file, "ok")
	s.run("ropewalk", "plugin", "verify", "--accept", "../plugins/sessionstore-third").exits(1, "specify the name")

	elsewhere := install(t, filepath.Join(built, "auth-static"), filepath.Join(s.dir, "auth-static"))
	sum := s.run("ropewalk", "plugin", "info", elsewhere).exits(0).row("sha256")[1]
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "auth: {adapter: mine, path: "+elsewhere+", sha256: "+sum+"}\napiKey: a-key-of-the-operator\n")
	s.run("ropewalk", "plugin", "verify").exits(0).row(elsewhere, "ok")
	for name, text := range map[string]string{
		"":        "auth: {adapter: mine, path: " + elsewhere + ", sha256: " + sum + ", token: \"${env:OF_THE_SERVER}\"}\napiKey: ${env:OF_THE_SERVER}\n",
		"PLUGINS": "auth: {adapter: mine, path: \"${env:PLUGINS}/mine\", sha256: " + sum + "}\n",
	} {
		file := s.write("variables.yaml", text)
		if name == "" {
			s.run("ropewalk", "plugin", "verify", "--config", file).exits(0).row(elsewhere, "ok")
			s.run("ropewalk", "plugin", "remove", "registry-none", "--config", file).exits(1, "registry-none")
		} else {
			s.run("ropewalk", "plugin", "verify", "--config", file).exits(1, "auth.path: the environment variable PLUGINS is not set")
			s.run("ropewalk", "plugin", "remove", "sessionstore-third", "--config", file).exits(1, "auth.path: the environment variable PLUGINS is not set", "--force")
		}
	}
	change(t, elsewhere)
	s.run("ropewalk", "plugin", "verify").exits(1, "1 of 2 plugins").row(elsewhere, "changed")

	for _, gone := range []string{elsewhere, file} {
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
	}
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "sessionStore: third\n")
	s.run("ropewalk", "plugin", "verify").exits(1, "1 of 1 plugins", "ropewalk.yaml:1").row(file, "missing")
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "")
	s.run("ropewalk", "plugin", "verify", "--accept", "sessionstore-third").exits(0, "its record was removed")
	s.run("ropewalk", "plugin", "verify").exits(0)
}

// change appends a byte. The executable still works.
func change(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
