package core

import (
	"encoding/json"
	"strings"
)

// Kind is one of the lists that apps offer. Its value is the name of the list's member in the MCP result.
type Kind string

// The four lists of MCP.
const (
	KindTools     Kind = "tools"
	KindPrompts   Kind = "prompts"
	KindResources Kind = "resources"
	KindTemplates Kind = "resourceTemplates"
)

// Prompt is one prompt exactly as its app listed it.
type Prompt struct {
	Server string          // the app's short name
	Name   string          // the bare name, without the server's prefix
	Raw    json.RawMessage // the prompt object from the app's prompts/list result
}

// FullName returns the prompt's name in its workspace: server__name, shortened to at most MaxToolName bytes.
func (p Prompt) FullName() string { return shortened(p.LongName()) }

// LongName returns the prompt's name in its workspace before it is shortened.
func (p Prompt) LongName() string { return p.Server + "__" + p.Name }

// OwnName returns the app's own name for the prompt.
func (p Prompt) OwnName() string { return p.Name }

// Resource is one resource exactly as its app listed it.
type Resource struct {
	Server string          // the app's short name
	URI    string          // as the app names it
	Raw    json.RawMessage // the resource object from the app's resources/list result
}

// ResourceTemplate is one resource template exactly as its app listed it.
type ResourceTemplate struct {
	Server   string          // the app's short name
	Template string          // the URI template (RFC 6570), as the app wrote it
	Raw      json.RawMessage // the object from the app's resources/templates/list result
}

// Offer contains the lists of all apps in a workspace, sorted by server name and then in the app's own
// order. It is immutable and is replaced when something changes. The replacement reuses the slices of
// unchanged lists.
type Offer struct {
	Tools     []Tool
	Prompts   []Prompt
	Resources []Resource
	Templates []ResourceTemplate
	Held      []HeldTool // tools that are missing from Tools because nobody has accepted them
}

// MissingApp is an app that should be running but whose tools are not known.
type MissingApp struct {
	Name   string `json:"app"`
	Status State  `json:"status"`
}

// Instructions is the text from an app's handshake that explains how to use the app.
type Instructions struct {
	Server string // the app's short name
	Text   string
}

// ViewURI returns the URI under which a view of an app (MCP Apps) is served: ui://<server>/ followed by the rest of the
// app's own URI. Other URIs are returned unchanged.
func ViewURI(server, own string) string {
	if rest, isView := strings.CutPrefix(own, "ui://"); isView {
		return "ui://" + server + "/" + rest
	}
	return own
}
