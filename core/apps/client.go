package apps

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Asker puts what an app asks to the client for whom a call is made.
type Asker interface {
	// Ask takes one request of the app: elicitation/create, sampling/createMessage or roots/list.
	// Params and result are raw. A *rpc.Error goes back to the app as it is. ctx ends when the
	// app takes its question back, and when the call that it is about ends.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// ProgressAsker is an Asker whose client says things about a question before it answers.
type ProgressAsker interface {
	// AskWithProgress is Ask. heard, which may wait for the app to take it, gets what the client says about the
	// question meanwhile: its progress, with the app's own token.
	AskWithProgress(ctx context.Context, method string, params json.RawMessage, heard func(rpc.Notification)) (json.RawMessage, error)
}

// Client is the client for whom calls are made, as far as apps are concerned. It is immutable.
type Client struct {
	session      string
	stateless    bool
	capabilities json.RawMessage
	can          ability
}

// NewClient describes a client. Session is unique among all sessions of the server, "" for a
// client that has none: no app gets a process of its own for it. Stateless tells that it speaks
// link.StatelessVersion, where an app asks in its results and nobody else is asked. Capabilities are
// the client capabilities it declared, as JSON, nil for none.
func NewClient(session string, stateless bool, capabilities json.RawMessage) *Client {
	return &Client{session: session, stateless: stateless, capabilities: capabilities, can: abilities(capabilities)}
}

// ability is a set of what clients can be asked.
type ability uint8

const (
	abilityForm ability = 1 << iota
	abilityURL
	abilitySampling
	abilityRoots
	abilitySamplingTools
)

// The requests of an app to its client.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// everything is what the shared instance of an app is told that its client can do: whether an app
// asks at all shows at its first question. The extension says that views (MCP Apps) are of use.
const everything = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}},"roots":{},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// abilities reads client capabilities. An elicitation capability that names no mode means forms
// (MCP 2025-11-25, client/elicitation).
func abilities(capabilities json.RawMessage) ability {
	var said struct {
		Elicitation *struct {
			Form json.RawMessage `json:"form"`
			URL  json.RawMessage `json:"url"`
		} `json:"elicitation"`
		Sampling *struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"sampling"`
		Roots json.RawMessage `json:"roots"`
	}
	if json.Unmarshal(capabilities, &said) != nil {
		return 0
	}
	var can ability
	if e := said.Elicitation; e != nil {
		if e.URL != nil {
			can |= abilityURL
		}
		if e.Form != nil || e.URL == nil {
			can |= abilityForm
		}
	}
	if s := said.Sampling; s != nil {
		can |= abilitySampling
		if s.Tools != nil {
			can |= abilitySamplingTools
		}
	}
	if said.Roots != nil {
		can |= abilityRoots
	}
	return can
}

// wanted is what a question takes of a client, 0 for a method that is none.
func wanted(method string, params json.RawMessage) ability {
	switch method {
	case methodSample:
		var said struct {
			Tools      json.RawMessage `json:"tools"`
			ToolChoice json.RawMessage `json:"toolChoice"`
		}
		if json.Unmarshal(params, &said) == nil && (said.Tools != nil || said.ToolChoice != nil) {
			return abilitySampling | abilitySamplingTools
		}
		return abilitySampling
	case methodRoots:
		return abilityRoots
	case methodElicit:
		var said struct {
			Mode string `json:"mode"`
		}
		if json.Unmarshal(params, &said) == nil && said.Mode == "url" {
			return abilityURL
		}
		return abilityForm
	}
	return 0
}

// Call is one call of an app. Params and the result are raw: nothing of them is decoded or lost.
type Call struct {
	Method string
	Params json.RawMessage        // one JSON object, nil for none
	Notify func(rpc.Notification) // gets what the app says about the call, in wire order; nil for a caller that wants none
	Client *Client                // for whom; nil for a caller that cannot be asked anything
	Asker  Asker                  // how Client is asked while the call runs; nil when it cannot be
	Owner  string                 // who calls, for a stateless client: nobody else can go on with the call

	Mirrors []core.Mirror // of the tool that is called: remote apps of link.StatelessVersion want them in headers
}
