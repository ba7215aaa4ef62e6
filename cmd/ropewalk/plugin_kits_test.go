package main_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
)

func TestPluginTestPassesThePluginsThatKeepTheirContract(t *testing.T) {
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
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"a session store": {
			[]string{"sessionstore-memory"}, []string{"0 failed", "a session comes back as it was put"},
		},
		"an adapter of OpenID providers without settings": {
			[]string{"auth-oidc"}, []string{"0 failed", "a key that the provider rotated out is refused"},
		},
		"an adapter of OpenID providers with its own settings": {
			[]string{"auth-oidc", "--config", "oidc.yaml"}, []string{"0 failed", "settings: oidc.yaml"},
		},
		"an adapter of another kind, with samples": {
			[]string{"auth-static", "--config", "static.yaml", "--samples", "static.json"},
			[]string{"0 failed", "a token with a bad signature is refused", "known keys outlive the provider (it is about adapters of OpenID providers)", "another issuer is refused (the samples have no such token)"},
		},
		"an adapter of another kind, without samples": {
			[]string{"auth-static", "--config", "static.yaml"}, []string{"0 failed", "describe names an issuer", "there are no --samples"},
		},
		"a registry": {
			[]string{"registry-directory", "--config", "directory.yaml"}, []string{"0 failed", "Shutdown ends the process and leaves nothing behind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &script{t: t, dir: s.dir, home: s.home}
			const some = "comes back as it was put|Shutdown ends|rotated out|good token|Validate accepts|describe names|digest is|a search for|bad signature"
			line := append([]string{"ropewalk", "plugin", "test", "--run", some, filepath.Join(built, c.args[0])}, c.args[1:]...)
			own.run(line...).exits(0, c.says...)
		})
	}
}

// bundle is a small MCP bundle.
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

func TestPluginTestTellsWhichPromiseIsBroken(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	for name, says := range map[string][]string{
		"sessionstore-forgetful": {"FAIL", "  a session comes back as it was put\n", "Get", "the plugin does not keep its contract"},
		"sessionstore-careless":  {"  Configure reports settings that do not exist, each with its path\n", "must have the path"},
		"sessionstore-mortal":    {"  an empty batch is not an error\n", "  its process lived through every check\n", "was replaced", "2 failed", "left out by --run"},
		"sessionstore-nameless":  {"  Info names the kind it was started as, a name and a version\n", "and a version"},
		"sessionstore-rude":      {"  Configure reports settings that do not exist, each with its path\n", "must answer OK"},
		"sessionstore-vague":     {"  Configure reports settings that do not exist, each with its path\n", `must have the path`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &script{t: t, dir: t.TempDir(), home: s.home}
			own.run("ropewalk", "plugin", "test", "--run", "settings that do not exist|comes back as it was put|empty batch|Info names|lived through", liar(t, own.dir, name)).exits(1, says...)
		})
	}
}

// What a plugin writes reaches the kit from both of its streams.
func TestPluginTestHearsSecrets(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "plugin", "test", "--run", "logs or prints", liar(t, s.dir, "auth-talkative")).exits(1,
		"holds a bearer token\n", "it holds a bearer token that was accepted", "it holds a login code in base64", "2 failed")
}

func TestPluginTestSaysOnceWhatKeepsAPluginFromBeingTested(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.write("wrong.yaml", "dri: /tmp\n")
	s.write("torn.yaml", "dir: [\n")
	directory := filepath.Join(built, "registry-directory")
	s.run("ropewalk", "plugin", "test", directory).exits(1, "dir: must be the absolute path", "give it others with --config")
	s.run("ropewalk", "plugin", "test", directory, "--config", "wrong.yaml").exits(1, `dri: is not a setting (did you mean "dir"?)`)
	s.run("ropewalk", "plugin", "test", directory, "--config", "torn.yaml").exits(1, "torn.yaml", "not YAML")
	s.run("ropewalk", "plugin", "test", directory, "--config", "none.yaml").exits(1, "none.yaml")
	s.run("ropewalk", "plugin", "test", directory, "--kind", "auth").exits(1, "of the kind registry")
	s.run("ropewalk", "plugin", "test", filepath.Join(built, "auth-static")).exits(1, "settings are not valid", "file: must be")
	s.run("ropewalk", "plugin", "test", "/bin/echo").exits(1, "handshake line")
}
