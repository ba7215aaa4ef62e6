package clients

import "testing"

// A command has no directory of its own, but it runs in the sandbox, too.
func TestACommandIsInstalledAndAnswersACall(t *testing.T) {
	t.Parallel()
	const code = `require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
		const { id, method, params } = JSON.parse(line);
		const result = {
			initialize: { protocolVersion: (params ?? {}).protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "c", version: "1" } },
			"tools/list": { tools: [{ name: "greet", inputSchema: { type: "object" } }] },
			"tools/call": { content: [{ type: "text", text: process.env.GREETING_TOKEN }] },
		}[method];
		if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32601, message: "no" } }) }));
	})`
	s := serve(t, "")
	s.Object(t, "POST", "/v1/apps/install", map[string]any{
		"command": "node", "args": []string{"-e", code}, "env": map[string]string{"GREETING_TOKEN": "hello"}, "serverName": "greeter",
	})
	if result := s.Object(t, "POST", "/v1/tools/call", map[string]any{"tool": "greeter__greet"}); result["result"] != "hello" {
		t.Errorf("%v", result)
	}
}
