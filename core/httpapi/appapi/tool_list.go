package appapi

import (
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

type toolsResponse struct {
	Tools []toolEntry `json:"tools"`
}

// toolEntry is a tool under its full name, with the app it belongs to. Definition is the tool as MCP
// clients see it.
type toolEntry struct {
	Name       string          `json:"name"`
	Server     string          `json:"server"`
	Tool       string          `json:"tool"`
	Definition json.RawMessage `json:"definition"`
}

// ListTools is GET /v1/tools: the tools the caller sees, of one app when server is given, and with
// every word of search in the name or the definition.
func (h *Handlers) ListTools(c *fiber.Ctx, caller core.Caller) error {
	server, words := c.Query("server"), strings.Fields(strings.ToLower(c.Query("search")))
	response := toolsResponse{Tools: []toolEntry{}}
	for _, t := range h.Tools.List(caller) {
		if (server == "" || t.Tool.Server == server) && containsAll(strings.ToLower(t.Name+" "+string(t.Raw)), words) {
			response.Tools = append(response.Tools, toolEntry{Name: t.Name, Server: t.Tool.Server, Tool: t.Tool.Name, Definition: t.Raw})
		}
	}
	return c.JSON(response)
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
