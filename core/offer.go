package core

import (
	"encoding/json"
	"strings"
)

// Kind is one of the lists that apps offer, named as MCP names the list's member in its answer.
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
	Raw    json.RawMessage // the prompt object of the app's prompts/list answer
}

// FullName is the prompt's name in its workspace, of at most MaxToolName bytes.
func (p Prompt) FullName() string { return shortened(p.LongName()) }

// LongName is the prompt's name in its workspace before it is shortened.
func (p Prompt) LongName() string { return p.Server + "__" + p.Name }

// OwnName is the name that the app gave the prompt.
func (p Prompt) OwnName() string { return p.Name }

// Resource is one resource exactly as its app listed it.
type Resource struct {
	Server string          // the app's short name
	URI    string          // as the app names it
	Raw    json.RawMessage // the resource object of the app's resources/list answer
}

// ResourceTemplate is one resource template exactly as its app listed it.
type ResourceTemplate struct {
	Server   string          // the app's short name
	Template string          // the URI template (RFC 6570), as the app wrote it
	Raw      json.RawMessage // the object of the app's resources/templates/list answer
}

// Offer is the lists of all apps of a workspace, ordered by server name and then in the app's own
// order. It is immutable, and replaced when something changes; an unchanged list is the same slice in
// the next one.
type Offer struct {
	Tools     []Tool
	Prompts   []Prompt
	Resources []Resource
	Templates []ResourceTemplate
	Held      []HeldTool // tools that are not among Tools because nobody has accepted them
}

// Instructions are what an app states in its handshake about its use.
type Instructions struct {
	Server string // the app's short name
	Text   string
}

// ViewURI is the URI under which a view of an app (MCP Apps) is served: ui://<server>/ and the rest of the app's own URI.
// Another URI is returned as it is.
func ViewURI(server, own string) string {
	if rest, isView := strings.CutPrefix(own, "ui://"); isView {
		return "ui://" + server + "/" + rest
	}
	return own
}
