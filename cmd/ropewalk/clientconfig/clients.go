package clientconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const keyInEnvironment = "Set ROPEWALK_API_KEY to the key in the environment in which the client is started."

// clients returns the known clients, by their name on the command line.
func clients() map[string]client {
	return map[string]client{
		"claude-code": {
			title: "Claude Code", steps: claudeCode, file: inDirectory(".mcp.json"), keyAdvice: keyInEnvironment,
			entry: func(e endpoint) (string, any) { return "mcpServers", remote("http", e, "${ROPEWALK_API_KEY}") },
		},
		"claude-desktop": {
			title: "Claude Desktop", steps: claudeDesktop, file: claudeDesktopFile, entry: claudeDesktopEntry,
			keyAdvice: "Replace YOUR_API_KEY with the key in Claude's configuration.",
		},
		"cursor": {
			title: "Cursor", steps: cursor, file: inHome(".cursor", "mcp.json"), keyAdvice: keyInEnvironment,
			entry: func(e endpoint) (string, any) { return "mcpServers", remote("", e, "${env:ROPEWALK_API_KEY}") },
		},
		"vscode": {
			title: "Visual Studio Code", steps: vscode, file: inDirectory(".vscode", "mcp.json"), keyAdvice: keyInEnvironment,
			entry: func(e endpoint) (string, any) { return "servers", remote("http", e, "${env:ROPEWALK_API_KEY}") },
		},
		"inspector": {title: "MCP Inspector", steps: inspector, needs: inspectorNeeds, keyAdvice: keyInEnvironment},
		"chatgpt":   {title: "ChatGPT", steps: chatgpt},
	}
}

func inDirectory(parts ...string) func() (string, error) {
	return func() (string, error) {
		dir, err := os.Getwd()
		return filepath.Join(append([]string{dir}, parts...)...), err
	}
}

func inHome(parts ...string) func() (string, error) {
	return func() (string, error) {
		dir, err := os.UserHomeDir()
		return filepath.Join(append([]string{dir}, parts...)...), err
	}
}

func claudeCode(e endpoint) string {
	header := ""
	if e.Key {
		header = ` --header "Authorization: Bearer $ROPEWALK_API_KEY"`
	}
	return fmt.Sprintf("claude mcp add --transport http %s %s%s", e.Name, e.URL, header)
}

func claudeDesktopFile() (string, error) {
	if runtime.GOOS == "darwin" {
		return inHome("Library", "Application Support", "Claude", "claude_desktop_config.json")()
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "Claude", "claude_desktop_config.json"), err
}

// claudeDesktopEntry uses mcp-remote, because Claude Desktop's file supports only commands.
func claudeDesktopEntry(e endpoint) (string, any) {
	args := []string{"-y", "mcp-remote", e.URL}
	if strings.HasPrefix(e.URL, "http://") {
		args = append(args, "--allow-http")
	}
	entry := map[string]any{"command": "npx", "args": args}
	if e.Key {
		entry["args"] = append(args, "--header", "Authorization:${AUTH_HEADER}")
		entry["env"] = map[string]string{"AUTH_HEADER": "Bearer YOUR_API_KEY"}
	}
	return "mcpServers", entry
}

func claudeDesktop(e endpoint) string {
	if strings.HasPrefix(e.URL, "https://") && !e.Key {
		return fmt.Sprintf("In Claude: Settings > Connectors > Add custom connector, with the URL\n\n  %s\n\n"+
			"Claude connects to it from Anthropic's servers. If the internet cannot reach this server, connect from your\n"+
			"machine instead. %s", e.URL, claudeDesktopFileSteps(e))
	}
	return claudeDesktopFileSteps(e)
}

func claudeDesktopFileSteps(e endpoint) string {
	file, _ := claudeDesktopFile() // if there is no home directory, only the name is shown
	_, entry := claudeDesktopEntry(e)
	return fmt.Sprintf("Put this into %s (this requires Node.js 20 or newer), and restart Claude:\n\n%s", file, snippet("mcpServers", e.Name, entry))
}

func cursor(e endpoint) string {
	return "Put this into ~/.cursor/mcp.json, or a project's .cursor/mcp.json:\n\n" +
		snippet("mcpServers", e.Name, remote("", e, "${env:ROPEWALK_API_KEY}"))
}

func vscode(e endpoint) string {
	return "Put this into .vscode/mcp.json:\n\n" + snippet("servers", e.Name, remote("http", e, "${env:ROPEWALK_API_KEY}"))
}

// inspectorNeeds explains why the command names a version: without one, npx on an older Node.js uses MCP
// Inspector 0.15.
const inspectorNeeds = "This requires MCP Inspector 2, which needs Node.js 22.19 or newer (`node --version`). Older Inspectors have other options " +
	"and connect to /mcp instead of the full URL."

func inspector(e endpoint) string {
	header := ""
	if e.Key {
		header = ` --header "Authorization: Bearer $ROPEWALK_API_KEY"`
	}
	return fmt.Sprintf("npx -y @modelcontextprotocol/inspector@2 --transport http --server-url %s%s", e.URL, header)
}

func chatgpt(e endpoint) string {
	note := ""
	if !strings.HasPrefix(e.URL, "https://") {
		note = "\n\nChatGPT connects from the internet: the server needs an https address and an identity provider (http.baseUrl, auth)."
	}
	return fmt.Sprintf("In ChatGPT: Settings > Apps & Connectors > Advanced settings > Developer mode, then Create, with the MCP server URL\n\n  %s\n\n"+
		"and OAuth as authentication.%s", e.URL, note)
}
