package apps

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// openerServer is an MCP server in Python that opens whatever a call asks for.
const openerServer = `import json, os, socket, sys, time

def look(path):
    if os.path.isdir(path):
        return ",".join(sorted(os.listdir(path)))
    with open(path) as f:
        return f.read()

def act(a):
    if "write" in a:
        with open(a["write"], "w") as f:
            f.write("written by the app")
        return "written"
    if "connect" in a:
        socket.create_connection(("127.0.0.1", a["connect"]), 60).close()
        return "connected"
    if "command" in a:
        def ask():
            s = socket.socket(socket.AF_UNIX)
            s.connect(a["command"])
            s.sendall(b"POST /owner HTTP/1.0\r\nHost: control\r\nContent-Length: 0\r\n\r\n")
            return s.recv(4096).decode()
        r, w = os.pipe()
        if os.fork() == 0:
            if os.fork() == 0: # becomes an orphan when its parent exits
                os.setsid()
                time.sleep(0.3)
                try:
                    os.write(w, b"a process that it left behind: " + ask().encode())
                except OSError as e:
                    os.write(w, b"error")
            os._exit(0)
        os.close(w)
        os.wait()
        return os.read(r, 4096).decode() + " the app itself: " + ask()
    if "link" in a:
        os.link(a["link"], a["to"])
        return "linked"
    if "setuid" in a:
        os.chmod(a["setuid"], 0o4755)
        return "changed"
    return look(a["read"])

for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "looking", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        try:
            text = act(m["params"].get("arguments", {}))
        except OSError as e:
            text = "error " + str(e)
        r = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

type access map[string]string

func TestAPastedScriptFailsWithTheCommandToAllowItAndThenRuns(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script := filepath.Join(dir, "s.py")
	definition := map[string]any{"mcpServers": map[string]any{"mine": map[string]any{"command": "python3", "args": []string{script}}}}
	if a := s.Do(t, "POST", "/v1/apps/import", definition); !strings.Contains(a.Body, "the sandbox hides "+script+"; install it again with --allow-read "+script) {
		t.Errorf("without permissions: %d %s", a.Status, a.Body)
	}
	definition["dryRun"] = true
	if a := s.Do(t, "POST", "/v1/apps/import", definition); !strings.Contains(a.Body, `"status":"planned"`) || !strings.Contains(a.Body, `"requests":[{"kind":"read","target":"`+script+`"`) {
		t.Errorf("a dry run: %d %s", a.Status, a.Body)
	}
	delete(definition, "dryRun")
	definition["permissions"] = map[string]any{"mine": map[string]any{}}
	a := s.Do(t, "POST", "/v1/apps/import", definition)
	if !strings.Contains(a.Body, `"error":"permissions_required"`) || !strings.Contains(a.Body, `"target":"`+script+`"`) || !strings.Contains(a.Body, `"also":{"kind":"read","target":"`+dir+`"}`) {
		t.Errorf("no decisions: %d %s", a.Status, a.Body)
	}
	definition["permissions"] = map[string]any{"mine": map[string]any{"allow": []access{{"kind": "read", "target": script}}}}
	if a := s.Do(t, "POST", "/v1/apps/import", definition); !strings.Contains(a.Body, `"status":"installed"`) {
		t.Fatalf("allowed: %d %s", a.Status, a.Body)
	}
	if got := act(t, s, "mine", map[string]any{"read": script}); got != openerServer {
		t.Errorf("the script reads itself as %q", got)
	}
	if got := act(t, s, "mine", map[string]any{"read": filepath.Join(dir, "docs", "a.txt")}); !strings.HasPrefix(got, "error") {
		t.Errorf("the app reads a file next to its script: %q", got)
	}
	if a := decide(t, s, "mine", "revoke", "read", script); a.Status != 200 || !strings.Contains(a.Body, "ropewalk app allow mine --read "+script) || !strings.Contains(a.Body, `"denials":[{"kind":"read"`) {
		t.Errorf("revoked: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/v1/apps/mine/restart", nil); a.Status != 500 || !strings.Contains(a.Body, "the sandbox hides "+script+"; ropewalk app allow mine --read "+script) {
		t.Errorf("a failed start returns %d %s", a.Status, a.Body)
	}
	mustDecide(t, s, "mine", "allow", "read", script)
}

// The arguments of an app are part of its manifest, which is shown and stored as text.
func TestASecretInAnArgumentReachesOnlyTheApp(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script := filepath.Join(dir, "s.py")
	definition := map[string]any{
		"mcpServers": map[string]any{"mine": map[string]any{
			"command": "python3", "args": []string{script, "--token", "${TOKEN}", "--auth=${AUTH}"}, "env": map[string]string{"AUTH": "own-secret"},
		}},
		"values": map[string]string{"TOKEN": "first-secret"}, "dryRun": true,
		"permissions": map[string]any{"mine": map[string]any{"allow": []access{{"kind": "read", "target": script}}}},
	}
	shows := func(what string, a harness.Response) {
		t.Helper()
		if a.Status != 200 || strings.Contains(a.Body, "first-secret") || strings.Contains(a.Body, "own-secret") {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	dry := s.Do(t, "POST", "/v1/apps/import", definition)
	if shows("a dry run", dry); !strings.Contains(dry.Body, `"--token","${TOKEN}","--auth=${AUTH}"`) {
		t.Errorf("a dry run shows %s", dry.Body)
	}
	definition["dryRun"] = false
	shows("the import", s.Do(t, "POST", "/v1/apps/import", definition))
	shows("the app", s.Do(t, "GET", "/v1/apps/mine", nil))
	given := func() string { return act(t, s, "mine", map[string]any{"read": "/proc/self/cmdline"}) }
	if got := given(); !strings.HasSuffix(got, "--token\x00first-secret\x00--auth=own-secret\x00") {
		t.Errorf("the app started with %q", got)
	}
	if a := s.Do(t, "PATCH", "/v1/apps/mine", map[string]any{"env": map[string]string{"input.TOKEN": "second-secret"}}); a.Status != 200 {
		t.Errorf("changing the value: %d %s", a.Status, a.Body)
	}
	if got := given(); !strings.Contains(got, "second-secret") {
		t.Errorf("after the value changed, the app started with %q", got)
	}
}

func TestAScriptThatCannotReadFilesNextToItFailsWithAHint(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script := filepath.Join(dir, "main.py")
	harness.WriteFile(t, script, "import s\n")
	for _, path := range []string{script, filepath.Join(dir, "s.py")} {
		if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // an app that runs as another user reads it
			t.Fatal(err)
		}
	}
	for _, definition := range []map[string]any{{"command": "python3", "args": []string{script}}, {"command": "python3", "args": []string{"main.py"}, "cwd": dir}} {
		body := map[string]any{"mcpServers": map[string]any{"mine": definition}, "existing": "replace", "permissions": map[string]any{"mine": map[string]any{"allow": []access{{"kind": "read", "target": script}}}}}
		if a := s.Do(t, "POST", "/v1/apps/import", body); definition["cwd"] == nil && !strings.Contains(a.Body, "the sandbox hides the files next to "+script+"; install it again with --allow-read "+dir) {
			t.Errorf("with only the script allowed: %s", a.Body)
		} else if definition["cwd"] != nil && !strings.Contains(a.Body, `"target":"`+dir+`","reason":"the working directory"`) {
			t.Errorf("the response does not ask for the working directory: %s", a.Body)
		}
		body["permissions"] = map[string]any{"mine": map[string]any{"allow": []access{{"kind": "read", "target": dir}}}}
		if a := s.Do(t, "POST", "/v1/apps/import", body); !strings.Contains(a.Body, `"status":"running"`) {
			t.Errorf("with the script's directory allowed: %s", a.Body)
		}
	}
	docker := map[string]any{"mcpServers": map[string]any{"boxed": map[string]any{"command": "sh", "args": []string{"-c", "echo Cannot connect to the Docker daemon >&2; exit 1"}}}}
	if a := s.Do(t, "POST", "/v1/apps/import", docker); !strings.Contains(a.Body, "only the configuration can allow it: apps.boxed.sandbox.read: [/var/run/docker.sock]") {
		t.Errorf("without Docker's socket: %s", a.Body)
	}
}

func TestAnAppCanUseOnlyItsGrantedPaths(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script, docs := filepath.Join(dir, "s.py"), filepath.Join(dir, "docs")
	s.Install(t, map[string]any{"command": "python3", "args": []string{script}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}}}})
	file := filepath.Join(docs, "new.txt")

	mustDecide(t, s, "mine", "allow", "read", docs)
	if got := act(t, s, "mine", map[string]any{"read": docs}); got != "a.txt" {
		t.Errorf("with read access, the app reads %q", got)
	}
	if got := act(t, s, "mine", map[string]any{"write": file}); !strings.HasPrefix(got, "error") {
		t.Errorf("with only read access, a write returns %q", got)
	}
	mustDecide(t, s, "mine", "allow", "write", docs)
	if got := act(t, s, "mine", map[string]any{"write": file}); got != "written" {
		t.Errorf("with write access, a write returns %q", got)
	}
	before, err := os.Stat(docs)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(file); err != nil || !sameOwner(before, after) {
		t.Errorf("the app's files do not belong to the owner of the directory: %v", err)
	}
	if got := act(t, s, "mine", map[string]any{"setuid": file}); !strings.HasPrefix(got, "error") {
		t.Errorf("setting the setuid bit: %q", got)
	}
	if got := act(t, s, "mine", map[string]any{"link": script, "to": filepath.Join(docs, "hard")}); !strings.HasPrefix(got, "error") {
		t.Errorf("a hard link out of a granted directory: %q", got)
	}
	if got := act(t, s, "mine", map[string]any{"read": docs + "/../../etc/shadow"}); !strings.HasPrefix(got, "error") {
		t.Errorf("a path with ..: %q", got)
	}
	mustDecide(t, s, "mine", "revoke", "write", docs)
	if got := act(t, s, "mine", map[string]any{"read": docs}); !strings.HasPrefix(got, "error") {
		t.Errorf("after the permission was revoked: %q", got)
	}
}

func TestATraceListsTheFilesThatAnAppCouldNotOpen(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script, docs := filepath.Join(dir, "s.py"), filepath.Join(dir, "docs")
	s.Install(t, map[string]any{"command": "python3", "args": []string{script}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}}}})
	look := func() {
		for _, arguments := range []map[string]any{{"read": filepath.Join(docs, "a.txt")}, {"write": filepath.Join(docs, "new.txt")}, {"read": "/etc/shadow"}, {"read": filepath.Join(docs, "missing.txt")}} {
			s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "mine", "tool": "act", "arguments": arguments}) // calls may fail while the app restarts
		}
	}
	look()
	if a := s.Do(t, "GET", "/v1/apps/mine/permissions", nil); !strings.Contains(a.Body, `"denials":[]`) {
		t.Errorf("without a trace, files are listed: %s", a.Body)
	}
	traced := make(chan harness.Response)
	go func() { traced <- s.Do(t, "POST", "/v1/apps/mine/permissions/trace", map[string]any{"seconds": 5}) }()
	testkit.Eventually(t, "both files are listed as refused", func() bool {
		look()
		a := s.Do(t, "GET", "/v1/apps/mine/permissions", nil)
		return strings.Contains(a.Body, `{"kind":"read","target":"`+filepath.Join(docs, "a.txt")+`"`) && strings.Contains(a.Body, `{"kind":"write","target":"`+docs+`"`)
	})
	a := <-traced
	_, denials, _ := strings.Cut(a.Body, `"denials":`)
	if a.Status != 200 || !strings.Contains(denials, filepath.Join(docs, "a.txt")) || strings.Contains(denials, "shadow") || strings.Contains(denials, "missing.txt") || strings.Contains(denials, script) {
		t.Errorf("the trace lists %d %s", a.Status, a.Body)
	}
	if got := act(t, s, "mine", map[string]any{"read": filepath.Join(docs, "a.txt")}); !strings.HasPrefix(got, "error") {
		t.Errorf("after the trace, the app reads %q", got)
	}
}

func TestAnUpdateThatNeedsMorePermissionsAsksAgain(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	docs := filepath.Join(dir, "docs")
	version := func(args ...string) map[string]any {
		return map[string]any{"name": "@e2e/growing", "server": map[string]any{
			"type": "python", "entry_point": "s.py", "mcp_config": map[string]any{"command": "python3", "args": append([]string{"${__dirname}/s.py"}, args...)},
		}}
	}
	bundle := harness.Bundle(t, version())
	harness.WriteFile(t, filepath.Join(bundle, "s.py"), openerServer)
	s.Install(t, map[string]any{"path": bundle, "permissions": map[string]any{}})
	if err := os.Rename(filepath.Join(harness.Bundle(t, version(docs)), "manifest.json"), filepath.Join(bundle, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	update := func(permissions map[string]any) harness.Response {
		return s.Do(t, "POST", "/v1/apps/growing/update", map[string]any{"permissions": permissions})
	}
	if a := update(map[string]any{}); a.Status != 400 || !strings.Contains(a.Body, `"error":"permissions_required"`) || !strings.Contains(a.Body, `"target":"`+docs+`"`) {
		t.Errorf("no decisions: %d %s", a.Status, a.Body)
	}
	if got := act(t, s, "growing", map[string]any{"read": docs}); !strings.HasPrefix(got, "error") {
		t.Errorf("after the refused update, the app reads %q", got)
	}
	if a := update(map[string]any{"allow": []access{{"kind": "read", "target": docs}}}); a.Status != 200 {
		t.Fatalf("allowed: %d %s", a.Status, a.Body)
	}
	if got := act(t, s, "growing", map[string]any{"read": docs}); got != "a.txt" {
		t.Errorf("after the update, the app reads %q", got)
	}
	if a := update(map[string]any{}); a.Status != 200 {
		t.Errorf("with the earlier decisions: %d %s", a.Status, a.Body)
	}
}

func TestAFileServerCanUseADirectoryGrantedLater(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	docs, more := filepath.Join(dir, "docs"), filepath.Join(dir, "more")
	harness.WriteFile(t, filepath.Join(more, "b.txt"), "another document")
	if err := os.Chmod(more, 0o755); err != nil { //nolint:gosec // an app that runs as another user reads it
		t.Fatal(err)
	}
	bundle := harness.NodeBundle(t, harness.NodeManifest("filesystem", harness.Filesystem, docs))
	allow := []access{{"kind": "write", "target": docs}}
	script, err := filepath.EvalSymlinks(filepath.Join(bundle, harness.EntryPoint(harness.Filesystem)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(script, bundle) { // if node_modules is a symbolic link
		allow = append(allow, access{"kind": "read", "target": script})
	}
	s.Install(t, map[string]any{"path": bundle, "serverName": "files", "permissions": map[string]any{"allow": allow}})
	mustDecide(t, s, "files", "allow", "read", more)
	testkit.Eventually(t, "the server works in both directories", func() bool { // the server may answer calls before it has requested its roots
		got := harness.ToText(t, s.Call(t, "files", "list_allowed_directories", nil))
		return strings.Contains(got, docs) && strings.Contains(got, more)
	})
	if got := harness.ToText(t, s.Call(t, "files", "list_directory", map[string]any{"path": more})); !strings.Contains(got, "b.txt") {
		t.Errorf("in the directory granted later, the server finds %s", got)
	}
}

func TestAGrantedPathReplacedByALinkIsNotOpened(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script, docs, other := filepath.Join(dir, "s.py"), filepath.Join(dir, "docs"), filepath.Join(dir, "other")
	harness.WriteFile(t, filepath.Join(other, "secret.txt"), "secret")
	s.Install(t, map[string]any{"command": "python3", "args": []string{script}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}, {"kind": "write", "target": docs}}}})
	if err := os.Rename(docs, docs+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, docs); err != nil {
		t.Fatal(err)
	}
	if a := s.Do(t, "POST", "/v1/apps/mine/restart", nil); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, path := range []string{docs, other, filepath.Join(docs, "secret.txt")} {
		if got := act(t, s, "mine", map[string]any{"read": path}); !strings.HasPrefix(got, "error") {
			t.Errorf("%s: %q", path, got)
		}
	}
	if a := s.Do(t, "GET", "/v1/apps/mine/permissions", nil); !strings.Contains(a.Body, `"state":"blocked"`) {
		t.Errorf("the permission has an unexpected state: %s", a.Body)
	}
}

func TestARestrictedAppReachesAGrantedPortOfThisMachine(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	port := listening(t)
	script := filepath.Join(dir, "s.py")
	install := map[string]any{"command": "python3", "args": []string{script, "--redis", "redis://localhost:" + port}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}}}}
	if a := s.Do(t, "POST", "/v1/apps/install", install); a.Status != 400 || !strings.Contains(a.Body, `"kind":"net","target":"localhost:`+port) {
		t.Fatalf("an undecided port: %d %s", a.Status, a.Body)
	}
	install["permissions"].(map[string]any)["deny"] = []access{{"kind": "net", "target": "localhost:" + port}}
	s.Install(t, install)
	connect := map[string]any{"connect": number(t, port)}
	if got := act(t, s, "mine", connect); !strings.HasPrefix(got, "error") {
		t.Errorf("with the port denied: %q", got)
	}
	waitForDenial(t, s, `"kind":"net","target":"localhost:`+port+`","count":`)
	mustDecide(t, s, "mine", "allow", "net", "localhost:"+port)
	if got := act(t, s, "mine", connect); got != "connected" {
		t.Errorf("with the port granted: %q", got)
	}
	mustDecide(t, s, "mine", "revoke", "net", "localhost:"+port)
	if got := act(t, s, "mine", connect); !strings.HasPrefix(got, "error") {
		t.Errorf("with the permission revoked: %q", got)
	}

	// A restriction grants no access, no matter who sets it.
	for _, target := range []string{"localhost:" + port, "127.0.0.1:*"} {
		if a := decide(t, s, "mine", "allow", "netOnly", target); a.Status != 400 {
			t.Errorf("restricted to %s: %d %s", target, a.Status, a.Body)
		}
	}
	mustDecide(t, s, "mine", "allow", "netOnly", "127.0.0.0/8:*")
	if got := act(t, s, "mine", connect); !strings.HasPrefix(got, "error") {
		t.Errorf("restricted to this machine: %q", got)
	}
	mustDecide(t, s, "mine", "allow", "net", "localhost:"+port)
	if got := act(t, s, "mine", connect); got != "connected" {
		t.Errorf("restricted and granted: %q", got)
	}
}

// The app tries many more ports than the server can remember.
func TestDeniedConnectionsDoNotFillTheEvents(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script := filepath.Join(dir, "s.py")
	s.Install(t, map[string]any{"command": "python3", "args": []string{script}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}}}})
	events := s.Listen(t)
	const remembered, inOneReport = 50, 20
	for port := 1; port <= 3*remembered; port++ {
		act(t, s, "mine", map[string]any{"connect": port})
		if port%inOneReport == 0 {
			waitForDenial(t, s, `"localhost:`+strconv.Itoa(port)+`"`)
		}
	}
	mustDecide(t, s, "mine", "allow", "net", "localhost:9") // causes the last event
	denied := 0
	for name := ""; name != "app.permissions"; {
		if name, _, _ = strings.Cut(events.Next(t), " "); name == "app.denied" {
			denied++
		}
	}
	if denied == 0 || denied > remembered {
		t.Errorf("got %d events about refused connections", denied)
	}
}

func TestProtectedPathsAreRefusedEvenToTheOwner(t *testing.T) {
	t.Parallel()
	s, dir := harness.Serve(t), demo(t)
	script := filepath.Join(dir, "s.py")
	s.Install(t, map[string]any{"command": "python3", "args": []string{script}, "serverName": "mine", "permissions": map[string]any{"allow": []access{{"kind": "read", "target": script}}}})
	link := filepath.Join(dir, "link")
	if err := os.Symlink(s.Home, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.Home, link, filepath.Join(s.Home, "ropewalk.db"), "/", "/tmp", "/dev", "/proc", dir + "/../../etc/shadow"} {
		if a := decide(t, s, "mine", "allow", "read", path); a.Status != 403 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	if a := decide(t, s, "mine", "allow", "net", "localhost:"+serverPort(s)); a.Status != 403 {
		t.Errorf("the server's own port: %d %s", a.Status, a.Body)
	}
}
