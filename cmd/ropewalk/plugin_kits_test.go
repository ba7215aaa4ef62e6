package main_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

func TestPluginTestPassesPluginsThatHonorTheirContract(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.write("static.json", `{"good": "good-token-0123456789", "issuer": "ropewalk:static", "subject": "alice",
		"expiresAt": "2099-01-01T00:00:00Z", "bad": [{"name": "cut", "clause": "a bad signature", "token": "good-token-012345678"}]}`)
	tokens := s.write("tokens.yaml", "tokens:\n  - {token: good-token-0123456789, subject: alice, expires: 2099-01-01T00:00:00Z}\n")
	s.write("static.yaml", "adapter: static\nfile: "+tokens+"\n")
	s.write("hello.mcpb", bundle(t))
	s.write("directory.yaml", "name: mine\nadapter: directory\ndir: ${env:PWD}\n")
	s.write("oidc.yaml", "adapter: oidc\nissuer: ${issuer}\nclientId: client_kit\nredirectUri: http://127.0.0.1:1/v1/auth/callback\n"+
		"organizationId: ${organization}\norganizationClaim: org_id\nroleClaim: ${roleClaim}\n")
	const some = "every answer is|it ends when|Validate reports|undeclared capabilities"
	for name, c := range map[string]struct {
		run  string
		args []string
		says []string
	}{
		"a session store": {
			some, []string{"sessionstore-memory"}, []string{"0 failed", "every answer is the one that the model expects, call after call", "effort quick, seed ", ": 3 properties\n"},
		},
		"an adapter for OpenID providers, without settings": {
			some, []string{"auth-oidc"}, []string{"0 failed", "undeclared capabilities are not served"},
		},
		"an adapter for OpenID providers, with its own settings": {
			some, []string{"auth-oidc", "--config", "oidc.yaml"}, []string{"0 failed", "settings: oidc.yaml"},
		},
		"an adapter of another kind, with samples": {
			some + "|keys and verdicts are right", []string{"auth-static", "--config", "static.yaml", "--samples", "static.json"},
			[]string{"0 failed", "keys and verdicts are right whatever the provider does", "it applies only to adapters for OpenID providers"},
		},
		"an adapter of another kind, without samples": {
			some + "|the description and", []string{"auth-static", "--config", "static.yaml"}, []string{"0 failed", "the description and the metadata are right"},
		},
		"a registry": {
			some, []string{"registry-directory", "--config", "directory.yaml"}, []string{"0 failed", "it ends when it must, and leaves nothing behind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &script{t: t, dir: s.dir, home: s.home}
			line := append([]string{"ropewalk", "plugin", "test", "--effort", "quick", "--start-timeout", "90s", "--run", c.run, filepath.Join(built, c.args[0])}, c.args[1:]...)
			own.run(line...).exits(0, c.says...)
		})
	}
}

// bundle writes a small MCP bundle.
func bundle(t *testing.T) string {
	t.Helper()
	manifest, err := json.Marshal(map[string]any{
		"manifest_version": "0.3", "name": "hello", "version": "1.0.0", "description": "Says hello.",
		"server": map[string]any{"type": "node", "entry_point": "server.js", "mcp_config": map[string]any{"command": "node", "args": []string{"${__dirname}/server.js"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	entry, err := archive.Create("manifest.json")
	if err == nil {
		_, err = entry.Write(manifest)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestPluginTestReportsWhatAPluginViolates(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	for name, says := range map[string][]string{
		"sessionstore-forgetful": {"FAIL", "  every answer is the one that the model expects, call after call\n", "-> NOT_FOUND", "the contract: \"NOT_FOUND once", "--seed=7 --run '^every answer", "the plugin violates its contract"},
		"sessionstore-careless":  {"  wrong settings are reported", "the contract: \"A setting that does not exist"},
		"sessionstore-mortal":    {"  a call that the contract does not allow", "  its process survived everything\n", "was replaced", "the first time because its process exited", "2 failed", "2 properties failed", "--run does not match"},
		"sessionstore-nameless":  {"  Info and health always give the same results\n", "and a version"},
		"sessionstore-rude":      {"  wrong settings are reported", "that is an OK response"},
		"sessionstore-vague":     {"  wrong settings are reported", "a problem with the path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &script{t: t, dir: t.TempDir(), home: s.home}
			own.run("ropewalk", "plugin", "test", "--effort", "quick", "--seed", "7", "--run", "wrong settings|every answer is|does not allow|Info and health|survived everything", liar(t, own.dir, name)).exits(1, says...)
		})
	}
}

func TestPluginTestDoesNotPassWhatItCannotJudge(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	const faults = "break at any write"
	durable := liar(t, s.dir, "sessionstore-durable")
	s.run("ropewalk", "plugin", "test", "--run", faults, durable).exits(4, "not judged", "give its address with --backend", "1 not judged")
	s.run("ropewalk", "plugin", "test", "--run", faults, "--backend", "none", durable).exits(0, "not applicable")
	s.write("backend.json", `{"table": "sessions", "url": "postgres://${backend}/db"}`)
	for _, backend := range [][]string{nil, {"--backend", "none"}} {
		line := append([]string{"ropewalk", "plugin", "test", durable, "--config", "backend.json"}, backend...)
		s.run(line...).exits(1, `backend.json: "url" contains ${backend}; pass the backend's address as --backend HOST:PORT`)
	}
	s.run("ropewalk", "plugin", "test", durable, "--backend", "127.0.0.1:1").exits(1, "put ${backend} in the settings")
	s.run("ropewalk", "plugin", "test", "--effort", "endless", durable).exits(2, "quick, normal or deep")
}

func TestCommandsGivePluginsAsLongToStartAsTheServerDoes(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c, err := config.Load(config.Options{Home: t.TempDir(), Environment: config.Environment{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"test", "info", "install"} {
		s.run("ropewalk", "plugin", command, "--help").exits(0, "--start-timeout duration", "(default "+c.Plugins.StartTimeout.String()+")")
	}
}

func TestARecordedHistoryIsRechecked(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	kept := filepath.Join(s.dir, "history.json")
	s.run("ropewalk", "plugin", "test", "--effort", "quick", "--run", "every answer is", "--record", kept, liar(t, s.dir, "sessionstore-forgetful")).exits(1, "recorded in:  "+kept)
	s.run("ropewalk", "plugin", "test", "--history", kept).exits(1, "demanded:", "violates its contract")
	s.write("history.json", "{}")
	s.run("ropewalk", "plugin", "test", "--history", kept).exits(0, "A correct session store could have given")
}

// Everything that a plugin writes to standard output or standard error is searched for secrets.
func TestPluginTestFindsLeakedSecrets(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "test", "--effort", "quick", "--run", "every verdict|a login identifies", liar(t, s.dir, "auth-talkative")).exits(1,
		"its log and output: found a bearer token", "its log and output: found the login code in base64", "2 failed")
}

func TestPluginTestSaysOnceWhyAPluginCannotBeTested(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.write("wrong.yaml", "dri: /tmp\n")
	s.write("torn.yaml", "dir: [\n")
	directory := filepath.Join(built, "registry-directory")
	s.run("ropewalk", "plugin", "test", directory).exits(1, "dir: must be the absolute path", "specify other settings with --config")
	s.run("ropewalk", "plugin", "test", directory, "--config", "wrong.yaml").exits(1, `dri: is not a setting (did you mean "dir"?)`)
	s.run("ropewalk", "plugin", "test", directory, "--config", "torn.yaml").exits(1, "torn.yaml", "not YAML")
	s.run("ropewalk", "plugin", "test", directory, "--config", "none.yaml").exits(1, "none.yaml")
	s.run("ropewalk", "plugin", "test", directory, "--kind", "auth").exits(1, "of the kind registry")
	s.run("ropewalk", "plugin", "test", filepath.Join(built, "auth-static")).exits(1, "settings are not valid", "file: must be")
	s.run("ropewalk", "plugin", "test", "/bin/echo").exits(1, "handshake line")
	temporary := t.TempDir()
	s.environ = []string{"TMPDIR=" + temporary}
	s.run("ropewalk", "plugin", "test", s.write("demo.jar", "not executable")).exits(1, "demo.jar", "may not be executed")
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
