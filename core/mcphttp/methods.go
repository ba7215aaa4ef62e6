package mcphttp

import (
	"github.com/ropewalk/ropewalk/core"
)

// method is a request that both kinds of revisions answer alike, nil when there is no such method.
func (e *Endpoint) method(name string) method {
	switch name {
	case "tools/list":
		return e.listTools
	case "tools/call":
		return e.callTool
	case "prompts/list":
		return e.lister(core.KindPrompts)
	case "resources/list":
		return e.lister(core.KindResources)
	case "resources/templates/list":
		return e.lister(core.KindTemplates)
	case "prompts/get":
		return e.passOn(e.o.Tools.GetPrompt)
	case "resources/read":
		return e.passOn(e.o.Tools.ReadResource)
	case "completion/complete":
		return e.passOn(e.o.Tools.Complete)
	}
	return nil
}

// sessionMethod is a method of the revisions with sessions, nil when the SDK answers it.
func (e *Endpoint) sessionMethod(name string) method {
	switch name {
	case "resources/subscribe":
		return e.subscribe
	case "resources/unsubscribe":
		return e.unsubscribe
	case "logging/setLevel":
		return e.setLevel
	}
	return e.method(name)
}
