package elicit

import (
	"encoding/json"
	"net/url"

	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	methodCreate = "elicitation/create"
	maxRequest   = 64 << 10 // bytes per question

	// The error codes of JSON-RPC 2.0, section 5.1, and MCP's own for a call that requires the person to visit a URL
	// first (MCP 2025-11-25, client/elicitation).
	methodNotFound = -32601
	invalidParams  = -32602
	urlRequired    = -32042
)

// The modes of MCP 2025-11-25, client/elicitation.
const (
	modeForm = "form"
	modeURL  = "url"
)

// request is an app's question: the params of elicitation/create.
type request struct {
	Mode          string          `json:"mode"`
	Message       string          `json:"message"`
	Schema        json.RawMessage `json:"requestedSchema"`
	URL           string          `json:"url"`
	ElicitationID string          `json:"elicitationId"`
}

// readRequest parses a question. It rejects anything that no client could show, with an *rpc.Error.
func readRequest(params json.RawMessage) (r request, err error) {
	if len(params) > maxRequest {
		return r, refuse(invalidParams, "the question is longer than 64 KiB")
	}
	if err := json.Unmarshal(params, &r); err != nil || r.Message == "" {
		return r, refuse(invalidParams, "message must be a non-empty string")
	}
	switch r.Mode {
	case "", modeForm:
		var schema struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(r.Schema, &schema) != nil || schema.Type != "object" {
			return r, refuse(invalidParams, "requestedSchema must be the schema of an object")
		}
		r.Mode, r.URL, r.ElicitationID = modeForm, "", ""
	case modeURL:
		at, err := url.Parse(r.URL)
		if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
			return r, refuse(invalidParams, "url must be an http or https address")
		}
		if r.ElicitationID == "" {
			return r, refuse(invalidParams, "elicitationId is missing")
		}
		r.Schema = nil
	default:
		return r, refuse(invalidParams, "mode must be form or url")
	}
	return r, nil
}

func refuse(code int, message string) error { return &rpc.Error{Code: code, Message: message} }
