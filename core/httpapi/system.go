package httpapi

import (
	"encoding/json"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// runSystem responds with the result of one of the server's own tools: what a model may do through
// system__<tool>, a program may do through /v1, under the same feature flags and roles.
func (s *Server) runSystem(c *fiber.Ctx, caller core.Caller, tool string, arguments map[string]any) error {
	result, err := s.tools.RunSystem(c.UserContext(), caller, tool, mustEncode(arguments))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(result)
}

// mustEncode encodes texts and numbers, which cannot fail.
func mustEncode(arguments map[string]any) json.RawMessage {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return encoded
}

// pathText is a path parameter that may be percent-encoded, such as an email address.
func pathText(c *fiber.Ctx, name string) (string, error) {
	text, err := url.PathUnescape(c.Params(name))
	if err != nil {
		return "", core.Errorf(core.CodeBadRequest, "the path is not well-formed")
	}
	return text, nil
}
