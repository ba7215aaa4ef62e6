package httpapi

import (
	"bytes"
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/requestinfo"
)

// Auditor records what was done. Its error means that what is not recorded must not be done.
type Auditor interface {
	Record(ctx context.Context, r core.AuditRecord) error
}

// recordRequest records the changes that are made through /v1, logins, and everything that is refused for
// lack of an identity or a right. Calls of tools are recorded by the tool namespace.
func (s *Server) recordRequest(c *fiber.Ctx) error {
	if s.options.Audit == nil {
		return c.Next()
	}
	changes := c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead && c.Path() != "/v1/tools/call"
	record := core.AuditRecord{
		Address: c.IP(), Action: c.Method() + " " + c.Path(), RequestID: string(c.Response().Header.Peek(requestIDHeader)),
	}
	if changes {
		// A change is recorded before it is made, so that none is made that cannot be recorded.
		begun := record
		begun.Outcome = "begun"
		if err := s.options.Audit.Record(c.UserContext(), begun); err != nil {
			return err
		}
	}
	err := c.Next()
	code := core.CodeOf(err)
	refused := err != nil && (code == core.CodeUnauthenticated || code == core.CodeForbidden)
	if !changes && !refused && !strings.HasPrefix(c.Path(), "/v1/auth/callback") {
		return err
	}
	if caller, known := authn.CallerOf(c.Context()); known {
		record.Actor, record.Workspace = caller.User.ID, caller.Workspace.ID
	}
	record.Target = c.Params("name", c.Params("id"))
	record.Outcome = "ok"
	if err != nil {
		record.Outcome = string(code)
	}
	_ = s.options.Audit.Record(c.UserContext(), record) // it is done; the log reports the error
	return err
}

// recordRefusal records what a mounted endpoint, such as /mcp, refused for lack of an identity or a
// right. recordRequest does it for /v1.
func (s *Server) recordRefusal(ctx *fasthttp.RequestCtx) {
	status := ctx.Response.StatusCode()
	if s.options.Audit == nil || status != fiber.StatusUnauthorized && status != fiber.StatusForbidden || bytes.HasPrefix(ctx.Path(), []byte("/v1/")) {
		return
	}
	outcome := core.CodeUnauthenticated
	if status == fiber.StatusForbidden {
		outcome = core.CodeForbidden
	}
	_ = s.options.Audit.Record(requestinfo.Of(ctx).In(s.root), core.AuditRecord{ // it is refused; the log reports the error
		Address: s.guard.ClientAddress(ctx), Action: string(ctx.Method()) + " " + string(ctx.Path()), Outcome: string(outcome),
		RequestID: string(ctx.Response.Header.Peek(requestIDHeader)),
	})
}
