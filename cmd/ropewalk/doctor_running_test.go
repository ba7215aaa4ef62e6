package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorExaminesARunningServerWhoseVariablesItDoesNotHave(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	nowhere := t.TempDir()
	s.write(filepath.Join(s.home, "ropewalk.yaml"), "models: {default: \"m:x\", providers: {m: {type: openai, baseUrl: \"http://127.0.0.1:1\", apiKey: \"${env:OF_THE_SERVER}\"}}}\n")
	s.run("ropewalk", "doctor").exits(1, "error    configuration", "set OF_THE_SERVER for the server", "home            "+s.home)
	path := os.Getenv("PATH")
	s.environ = []string{"OF_THE_SERVER=secret", "PATH=" + nowhere}
	s.up()
	s.environ = []string{"PATH=" + path}
	out, errs, status := s.split("", "ropewalk", "doctor")
	for _, text := range []string{
		"warning  configuration", "OF_THE_SERVER is not set here; the running server may have it", "is running at ", "the server is ready",
		"1 running, 0 stopped", "sessionstore memory", "not found on the server's PATH, " + nowhere, "restart the server",
	} {
		if status != 0 || !strings.Contains(out, text) {
			t.Errorf("status %d, %q is missing in\n%s%s", status, text, out, errs)
		}
	}
	s.run("ropewalk", "backup", "running.db").exits(0)
}

func TestDoctorTrustsARunningServerThatHasAKeyInItsEnvironment(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	path := "PATH=" + os.Getenv("PATH")
	s.environ = []string{path}
	key, _, _ := s.split("", "ropewalk", "encryption", "new-key")
	s.environ = []string{path, "ROPEWALK_STORAGE_KEY=" + strings.TrimSpace(key)}
	s.up()
	s.environ = []string{path}
	s.run("ropewalk", "doctor").exits(0, "ok       encryption", "the running server encrypts apps' secrets")
}

func TestDoctorReadsTheConfigurationAndTheSandboxOfTheRunningServer(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	file := s.write("elsewhere.yaml", "log: {level: info}\n")
	s.up("--config", "elsewhere.yaml")
	s.run("ropewalk", "doctor").exits(0, "ok       configuration   "+file, "ok       sandbox", "limits")
	other := s.write("other.yaml", "")
	s.run("ropewalk", "doctor", "--config", other).exits(0, "ok       configuration   "+other)
	s.write("elsewhere.yaml", "http: {baseUrl: \"http://127.0.0.1:1\"}\n")
	s.run("ropewalk", "doctor").exits(0, "warning  baseUrl", "http.baseUrl: http://127.0.0.1:1: ", "set http.baseUrl to the address")
}

func TestAKeyThatTheServerDoesNotAcceptIsReported(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.environ = []string{"PATH=" + s.dir, "SERVICE_API_KEY=0123456789abcdef"}
	s.up()
	s.environ = []string{"PATH=" + s.dir, "ROPEWALK_API_KEY=rwk_canary"}
	refused := s.run("ropewalk", "status").exits(1, "the server does not accept the key from ROPEWALK_API_KEY: ", "`ropewalk key create` creates one")
	examined := s.run("ropewalk", "doctor").exits(1, "error    API key", "the server does not accept the key from ROPEWALK_API_KEY", "or unset it")
	if strings.Contains(refused.text+examined.text, "canary") {
		t.Error("the output contains the key")
	}
	s.environ = []string{"PATH=" + s.dir}
	s.run("ropewalk", "status").exits(0, "Owner (owner)") // no key is needed on the server's machine
}
