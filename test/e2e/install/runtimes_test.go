package install

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// readingServer is an npm package with one tool. The tool returns which of the files in its arguments it can read.
const readingServer = `#!/usr/bin/env node
const { greeting } = require("beside");
const fs = require("fs");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: greeting, version: "1" } }),
    "tools/list": () => ({ tools: [{ name: "read", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({
      content: [{ type: "text", text: JSON.stringify(params.arguments.files.filter((f) => { try { fs.readFileSync(f); return true; } catch { return false; } })) }],
    }),
  }[method];
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answer ? answer() : {} }));
});
`

// nvm installed Node.js in a home directory, and npm installed a package next to it. The package starts as an app. The
// app cannot read any other file in the home directory.
func TestARuntimeInAHomeReadsOnlyItsOwnFiles(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is missing")
	}
	user, err := os.MkdirTemp("/tmp", "user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(user) })
	prefix := filepath.Join(user, ".nvm/versions/node/v1")
	put := func(path, content string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode)); err != nil { //nolint:gosec // an app that runs as another user reads it
			t.Fatal(err)
		}
	}
	put(filepath.Join(prefix, "lib/node_modules/reader/cli.js"), readingServer, 0o755)
	put(filepath.Join(prefix, "lib/node_modules/beside/index.js"), `exports.greeting = "reader";`, 0o644)
	program, err := os.ReadFile(node)
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(prefix, "bin/node"), string(program), 0o755)
	if err := errors.Join(os.Symlink("../lib/node_modules/reader/cli.js", filepath.Join(prefix, "bin/reader")), os.Chmod(user, 0o755)); err != nil {
		t.Fatal(err)
	}
	var canaries []string
	for _, name := range []string{
		".npmrc", ".netrc", ".env", ".nvm/.npmrc", ".nvm/versions/node/v1/.env", ".nvm/versions/node/v1/etc/npmrc", ".nvm/versions/node/v1/bin/.env", ".cargo/credentials.toml",
		"proj/.env", "proj/bin/notes",
	} {
		canaries = append(canaries, filepath.Join(user, name))
		put(filepath.Join(user, name), "canary", 0o644)
	}
	put(filepath.Join(user, "proj/bin/run"), "#!/bin/sh\n", 0o755)
	path := filepath.Join(prefix, "bin") + ":" + filepath.Join(user, "proj/bin") + ":/usr/bin:/bin"
	for _, level := range []string{"namespaces", "landlock"} {
		t.Run(level, func(t *testing.T) {
			s := harness.Serve(t, harness.Env("PATH="+path), harness.Env("HOME="+user), harness.Config("sandbox: {level: "+level+"}\n"))
			s.Install(t, map[string]any{"command": "reader", "serverName": "reader"})
			own := filepath.Join(prefix, "lib/node_modules/beside/index.js")
			raw, err := json.Marshal(s.Call(t, "reader", "read", map[string]any{"files": append(canaries, own)}))
			var read []string
			if err := errors.Join(err, json.Unmarshal(raw, &read)); err != nil || len(read) != 1 || read[0] != own {
				t.Errorf("the app reads %s (%v)", raw, err)
			}
		})
	}
}
