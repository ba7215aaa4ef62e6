package interact

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/apps/instance"
)

// Client describes the client of a call to the apps. It is immutable.
type Client struct {
	session      string
	stateless    bool
	capabilities json.RawMessage
	abilities    ability
}

// NewClient describes a client. session is unique among all sessions of the server. It is "" for a client without a
// session, which does not get its own instances. stateless means that the client speaks link.StatelessVersion, in
// which apps ask for input in their results. capabilities are the client capabilities that it declared, as JSON; nil
// for none.
func NewClient(session string, stateless bool, capabilities json.RawMessage) *Client {
	return &Client{session: session, stateless: stateless, capabilities: capabilities, abilities: parseAbilities(capabilities)}
}

// Session returns the session that apps may have their own instances for, or "" for all stateless clients. ok is false
// for a client (including nil) that only shared instances serve.
func (c *Client) Session() (session string, ok bool) {
	if c == nil {
		return "", false
	}
	return c.session, c.stateless || c.session != ""
}

// AcceptsURLs reports whether the client can send its user to a web page (elicitation in URL mode).
func (c *Client) AcceptsURLs() bool { return c != nil && c.abilities&abilityURL != 0 }

// AcceptsForms reports whether the client can show its user a form (elicitation in form mode).
func (c *Client) AcceptsForms() bool { return c != nil && c.abilities&abilityForm != 0 }

// ability is a set of the kinds of request that a client can answer.
type ability uint8

const (
	abilityForm ability = 1 << iota
	abilityURL
	abilitySampling
	abilityRoots
	abilitySamplingTools
)

// AllCapabilities are the client capabilities that are announced to the shared instance of an app. The server announces
// everything because it learns what an app asks only when the app asks. The extension is for MCP Apps.
const AllCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}},"roots":{},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// parseAbilities reads client capabilities. An elicitation capability without a mode means forms (MCP 2025-11-25,
// client/elicitation). The result is 0 if the capabilities cannot be parsed.
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

// neededAbilities returns the abilities that a client needs to answer a request. It returns 0 for other methods.
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
