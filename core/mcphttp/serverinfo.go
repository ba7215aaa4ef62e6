package mcphttp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// capabilities returns the server capabilities. They do not depend on which apps are installed, so that clients see an
// app installed later without opening a new session.
func capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{
		Completions: &mcp.CompletionCapabilities{},
		Logging:     &mcp.LoggingCapabilities{}, //nolint:staticcheck // clients of every revision before 2026-07-28 use it
		Prompts:     &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Tools:       &mcp.ToolCapabilities{ListChanged: true},
		Extensions:  map[string]any{apps.SkillsExtension: empty()},
	}
}

// statelessCapabilities returns the capabilities for clients without a session. Only they can use tasks.
func statelessCapabilities() *mcp.ServerCapabilities {
	can := capabilities()
	can.Extensions[extensionTasks] = empty()
	return can
}

// implementation returns this server's identity.
func (e *Endpoint) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "ropewalk", Title: "Ropewalk", Version: e.o.Version}
}

// discover returns the result of server/discover, the stateless counterpart of the result of initialize.
func (e *Endpoint) discover(caller core.Caller) json.RawMessage {
	return encode(map[string]any{
		"supportedVersions": supported(),
		"capabilities":      statelessCapabilities(),
		"instructions":      composeInstructions(e.o.Tools.Instructions(caller)),
	})
}

// encode returns the JSON of a value that always encodes, without HTML escapes.
func encode(value any) json.RawMessage {
	raw, _ := rawjson.Encode(value) // strings, bools and lists of them
	return raw
}

// instructions explains to a model how names are formed on this server.
const instructions = "Tools and prompts of every app installed in this workspace. A tool is named <app>__<tool>, a prompt <app>__<prompt>; system__search finds tools by what they do."

// Limits of apps' instructions, which are part of every conversation of a client.
const (
	maxAppInstructions = 2 << 10  // bytes of one app's text
	maxInstructions    = 16 << 10 // bytes of the whole result
	maxOmission        = 128      // bytes of the sentence about the apps that did not fit
)

// composeInstructions returns the server's instructions, followed by a section for each app under its name. Each app's
// lines are quoted, so that no app can forge the section of another.
func composeInstructions(all []core.Instructions) string {
	var b strings.Builder
	b.WriteString(instructions)
	omitted := 0
	for _, app := range all {
		part := "\n\nInstructions of the app " + app.Server + ":\n" + quoted(app.Text)
		if b.Len()+len(part)+maxOmission > maxInstructions {
			omitted++
			continue
		}
		b.WriteString(part)
	}
	if omitted > 0 {
		fmt.Fprintf(&b, "\n\nThe instructions of %d more apps are left out, because together they are too long.", omitted)
	}
	return b.String()
}

// quoted returns at most maxAppInstructions bytes of text, with each line prefixed with "> ".
func quoted(text string) string {
	text = strings.NewReplacer("\r\n", "\n> ", "\n", "\n> ", "\r", "\n> ", "\u2028", "\n> ", "\u2029", "\n> ").Replace("> " + text)
	if len(text) <= maxAppInstructions {
		return text
	}
	const mark = " [...]"
	end := maxAppInstructions - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
