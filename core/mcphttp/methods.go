package mcphttp

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

// pending is a call that was started, as far as that goes without waiting.
type pending struct {
	done bool          // wait does not wait
	sent tools.Pending // a call on its way to its app; nil when it is not
	wait func() (result [][]byte, err error)
}

// done is a call that has its result. A result may come in parts, so that what the namespace keeps
// marshalled is copied once only.
func done(result [][]byte, err error) pending {
	return pending{done: true, wait: func() ([][]byte, error) { return result, err }}
}

func onePart(result json.RawMessage, err error) ([][]byte, error) { return [][]byte{result}, err }

// start starts a call. Every method of both kinds of revisions is here.
func (e *Endpoint) start(k *call) (p pending) {
	defer e.recoverCall(k, func(err error) { p = done(nil, err) })
	k.startSpan()
	switch k.Method {
	case "tools/call":
		return e.startTool(k)
	case "tools/list":
		return done(e.listTools(k))
	case "prompts/list":
		return done(e.list(k, core.KindPrompts))
	case "resources/list":
		return done(e.list(k, core.KindResources))
	case "resources/templates/list":
		return done(e.list(k, core.KindTemplates))
	case "prompts/get":
		return e.passOn(k, e.o.Tools.GetPrompt)
	case "resources/read":
		return e.passOn(k, e.o.Tools.ReadResource)
	case "completion/complete":
		return e.passOn(k, e.o.Tools.Complete)
	}
	if k.session == nil {
		if k.Method == "server/discover" {
			return done(onePart(e.discover(k.caller), nil))
		}
		return unknownMethod(k)
	}
	switch k.Method {
	case "ping":
		return done(onePart(empty(), nil))
	case "resources/subscribe":
		return e.aboutResource(k, k.session.Tools.Subscribe)
	case "resources/unsubscribe":
		return e.aboutResource(k, k.session.Tools.Unsubscribe)
	case "logging/setLevel":
		return e.setLevel(k)
	case "initialize":
		return done(nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "duplicate initialize: this session is open; send initialize without Mcp-Session-Id to open another one"})
	}
	if strings.HasPrefix(k.Method, "notifications/") {
		return done(nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a notification has no id"})
	}
	return unknownMethod(k)
}

func unknownMethod(k *call) pending {
	return done(nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + clip(k.Method)})
}
