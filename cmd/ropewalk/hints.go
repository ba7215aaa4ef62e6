package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/core/config"
)

// printHints prints what a new user needs first, which depends on the server's mode.
func printHints(w io.Writer, url, workspace string, c *config.Config) error {
	program, home := invocation(c)
	header, client := "", ""
	switch {
	case c.APIKey != "" && len(c.Auth) == 0:
		header = `-H "Authorization: Bearer $SERVICE_API_KEY" `
		client = " (with a key from `ropewalk key create`, or after configuring an identity provider: auth.adapter)"
	case c.APIKey != "":
		header = `-H "Authorization: Bearer $SERVICE_API_KEY" `
	case len(c.Auth) > 0:
		header = `-H "Authorization: Bearer $ACCESS_TOKEN" `
	}
	_, err := fmt.Fprintf(w, `
Ropewalk is running.

  URL        %[1]s
  Console    %[1]s in a browser
  Workspace  %[2]s

Call a tool of the sample app:

  %[5]s tool call%[6]s sample__echo --text hello
  curl -s %[1]s/v1/tools/call %[3]s-H 'Content-Type: application/json' -d '{"server":"sample","tool":"echo","arguments":{"text":"hello"}}'

Connect an MCP client%[4]s; `+"`%[5]s client-config CLIENT%[6]s`"+` prints what a client needs:

  {
    "mcpServers": {
      "ropewalk": {
        "type": "http",
        "url": "%[1]s/mcp/me"
      }
    }
  }

`+"`%[5]s doctor%[6]s`"+` reports what is missing, such as a model for `+"`%[5]s chat`"+`. Ctrl-C stops the server.

`, url, workspace, header, client, program, home)
	return err
}

// invocation returns how to start this program in a shell, and the flag for the home unless it is the default
// one. Commands that a user copies from the hints must reach this server.
func invocation(c *config.Config) (program, home string) {
	program = quoted(os.Args[0])
	if found, err := exec.LookPath("ropewalk"); err == nil && sameFile(found) {
		program = "ropewalk"
	}
	defaults := config.Environment{"HOME": c.Environment["HOME"]}
	if dir, err := config.FindHome("", defaults); err != nil || dir != c.Home {
		home = " --home " + quoted(c.Home)
	}
	return program, home
}

// sameFile reports whether a path refers to this executable.
func sameFile(path string) bool {
	exe, err := os.Executable()
	if err != nil {
		return false
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return false
	}
	ours, err := os.Stat(exe)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(path)
	return err == nil && os.SameFile(ours, theirs)
}

// quoted quotes text as one shell word.
func quoted(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+,:@%=", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
