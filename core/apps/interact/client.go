package interact

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/apps/instance"
)

// Client is the client that calls are made for, as apps see it. It is immutable.
type Client struct {
	session      string
	stateless    bool
	capabilities json.RawMessage
	abilities    ability
}

// NewClient describes a client. session is unique among all sessions of the server, or "" for a
// client without one: no app gets an instance of its own for it. stateless says that the client
// speaks link.StatelessVersion, in which apps ask by their results. capabilities are the client
// capabilities that it declared, as JSON; nil for none.
func NewClient(session string, stateless bool, capabilities json.RawMessage) *Client {
	return &Client{session: session, stateless: stateless, capabilities: capabilities, abilities: parseAbilities(capabilities)}
}

// Session returns the session that apps may have instances of their own for, "" for all stateless
// clients. ok is false for a client, nil among them, that is served by shared instances only.
func (c *Client) Session() (session string, ok bool) {
	if c == nil {
		return "", false
	}
	return c.session, c.stateless || c.session != ""
}

// AcceptsURLs reports whether the client can send its person to a page (elicitation in URL mode).
func (c *Client) AcceptsURLs() bool { return c != nil && c.abilities&abilityURL != 0 }

// AcceptsForms reports whether the client can show its person a form (elicitation in form mode).
func (c *Client) AcceptsForms() bool { return c != nil && c.abilities&abilityForm != 0 }

// ability is a set of requests that a client can answer.
type ability uint8

const (
	abilityForm ability = 1 << iota
	abilityURL
	abilitySampling
	abilityRoots
	abilitySamplingTools
)

// AllCapabilities are the client capabilities that are announced to the shared instance of an app:
// whether an app asks its clients shows when it does. The extension is that of MCP Apps.
const AllCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}},"roots":{},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// parseAbilities reads client capabilities. An elicitation capability without a mode means forms
// (MCP 2025-11-25, client/elicitation).
func parseAbilities(capabilities json.RawMessage) ability {
	var declared struct {
		Elicitation *struct {
			Form json.RawMessage `json:"form"`
			URL  json.RawMessage `json:"url"`
		} `json:"elicitation"`
		Sampling *struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"sampling"`
		Roots json.RawMessage `json:"roots"`
	}
	if json.Unmarshal(capabilities, &declared) != nil {
		return 0
	}
	var can ability
	if e := declared.Elicitation; e != nil {
		if e.URL != nil {
			can |= abilityURL
		}
		if e.Form != nil || e.URL == nil {
			can |= abilityForm
		}
	}
	if s := declared.Sampling; s != nil {
		can |= abilitySampling
		if s.Tools != nil {
			can |= abilitySamplingTools
		}
	}
	if declared.Roots != nil {
		can |= abilityRoots
	}
	return can
}

// neededAbilities returns the abilities that a client needs to answer a request, 0 for other methods.
func neededAbilities(method string, params json.RawMessage) ability {
	switch method {
	case instance.MethodSample:
		var request struct {
			Tools      json.RawMessage `json:"tools"`
			ToolChoice json.RawMessage `json:"toolChoice"`
		}
		if json.Unmarshal(params, &request) == nil && (request.Tools != nil || request.ToolChoice != nil) {
			return abilitySampling | abilitySamplingTools
		}
		return abilitySampling
	case instance.MethodRoots:
		return abilityRoots
	case instance.MethodElicit:
		var request struct {
			Mode string `json:"mode"`
		}
		if json.Unmarshal(params, &request) == nil && request.Mode == "url" {
			return abilityURL
		}
		return abilityForm
	}
	return 0
}
