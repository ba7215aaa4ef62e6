package chat

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	methodElicit  = "elicitation/create"
	questionLimit = 64 << 10 // of one question, bytes

	// JSON-RPC 2.0, 5.1, and MCP's own for a call that a visit to an address must precede.
	methodNotFound  = -32601
	invalidParams   = -32602
	addressRequired = -32042
)

// The modes of MCP 2025-11-25, client/elicitation.
const (
	modeForm = "form"
	modeURL  = "url"
)

// elicitation is what an app asks: the params of elicitation/create.
type elicitation struct {
	Mode          string          `json:"mode"`
	Message       string          `json:"message"`
	Schema        json.RawMessage `json:"requestedSchema"`
	URL           string          `json:"url"`
	ElicitationID string          `json:"elicitationId"`
}

// readElicitation refuses what no client could show, with a *rpc.Error.
func readElicitation(params json.RawMessage) (e elicitation, err error) {
	if len(params) > questionLimit {
		return e, refuse(invalidParams, "the question is longer than 64 KiB")
	}
	if err := json.Unmarshal(params, &e); err != nil || e.Message == "" {
		return e, refuse(invalidParams, "message must be a text that is not empty")
	}
	switch e.Mode {
	case "", modeForm:
		var schema struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(e.Schema, &schema) != nil || schema.Type != "object" {
			return e, refuse(invalidParams, "requestedSchema must be the schema of an object")
		}
		e.Mode, e.URL, e.ElicitationID = modeForm, "", ""
	case modeURL:
		at, err := url.Parse(e.URL)
		if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
			return e, refuse(invalidParams, "url must be an address of the web")
		}
		if e.ElicitationID == "" {
			return e, refuse(invalidParams, "elicitationId is missing")
		}
		e.Schema = nil
	default:
		return e, refuse(invalidParams, "mode must be form or url")
	}
	return e, nil
}

func refuse(code int, message string) error { return &rpc.Error{Code: code, Message: message} }

// visited reports whether a call failed because its person must go to some addresses first, and they
// agreed to: then it is to be made again, once.
func (a *asker) visited(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*rpc.Error](err)
	if !ok || refused.Code != addressRequired {
		return false
	}
	var said struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &said) != nil || len(said.Elicitations) == 0 {
		return false
	}
	for _, params := range said.Elicitations {
		asked, err := readElicitation(params)
		if err != nil || asked.Mode != modeURL || a.put(ctx, asked).Action != Accept {
			return false
		}
	}
	return true
}
