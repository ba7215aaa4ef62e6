package httpapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/accounts"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/httpapi/login"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// Auditor records actions. An error means that the action could not be recorded and must not be taken.
type Auditor interface {
	Record(ctx context.Context, r core.AuditRecord) error
}

// recorded is the key of a user value that marks requests whose outcome is in the audit log.
type recorded struct{}

// recordRequest records logins, changes made through /v1, and every request refused because its caller is unknown or
// lacks a right. Package tools records tool calls.
func (s *Server) recordRequest(c *fiber.Ctx) error {
	if s.options.Audit == nil {
		return c.Next()
	}
	links := c.Path() == accounts.CallbackPath // links an account, although it is a GET
	changes := links || c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead && c.Path() != "/v1/tools/call"
	record := s.auditRecord(c.Context())
	if changes {
		if err := s.recordBegun(c, record); err != nil {
			return err
		}
	}
	err := c.Next()
	attempt, login := login.AttemptOf(c.Context())
	cause := err
	if login && attempt.Err != nil {
		cause = attempt.Err
	} else if shown, ok := c.Locals(httpio.AuditError{}).(error); ok {
		cause = shown
	}
	caller, known := authn.CallerOf(c.Context())
	if links && !known { // the browser was sent to log in first
		return err
	}
	record.Outcome = "ok"
	if cause != nil {
		e := coreError(cause)
		record.Outcome, record.Reason = string(e.Code), httpio.Cause(cause, e)
		if status := statusOf(e.Code); !changes && !login && status != fiber.StatusUnauthorized && status != fiber.StatusForbidden {
			return err
		}
	} else if !changes && !login {
		return nil
	}
	if known {
		record.Actor, record.Workspace = caller.User.ID, caller.Workspace.ID
	}
	record.Target = clipped(c.Params("name", c.Params("id")))
	if target, ok := c.Locals(httpio.AuditTarget{}).(string); ok {
		record.Target = target
	}
	if login {
		record.Actor, record.Target = attempt.User.ID, attempt.Provider
	}
	c.Context().SetUserValue(recorded{}, true)
	_ = s.options.Audit.Record(c.UserContext(), record) // the change has already been made; the error is logged
	return err
}

// recordBegun records a change before it is made, so that no change goes unrecorded: if the server is killed, this is its
// only record. A request with refused credentials is recorded once, afterwards.
func (s *Server) recordBegun(c *fiber.Ctx, begun core.AuditRecord) error {
	sender, err := s.sender(webguard.RequestOf(c.Context()).In(s.root), &c.Context().Request.Header)
	if core.CodeOf(err) == core.CodeUnauthenticated {
		return nil
	}
	begun.Actor, begun.Outcome = sender.User.ID, "begun"
	return s.options.Audit.Record(c.UserContext(), begun)
}

// auditRecord returns a request's audit record with the fields that are known when the request arrives.
func (s *Server) auditRecord(ctx *fasthttp.RequestCtx) core.AuditRecord {
	return core.AuditRecord{
		Address: s.guard.ClientAddress(ctx), Action: string(ctx.Method()) + " " + clipped(string(ctx.Path())),
		RequestID: string(ctx.Response.Header.Peek(requestIDHeader)),
	}
}

// maxAuditText is the maximum length in bytes of a path or parameter in a record. Longer ones are cut off, because
// anyone can send them.
const maxAuditText = 1000

func clipped(text string) string {
	if len(text) > maxAuditText {
		return strings.ToValidUTF8(text[:maxAuditText], "") + "…"
	}
	return text
}

// recordRefusal records requests refused with 401 or 403 that recordRequest did not handle: those refused before it
// ran, and those refused by a mounted endpoint such as /mcp.
func (s *Server) recordRefusal(ctx *fasthttp.RequestCtx) {
	status := ctx.Response.StatusCode()
	if s.options.Audit == nil || status != fiber.StatusUnauthorized && status != fiber.StatusForbidden || ctx.UserValue(recorded{}) != nil {
		return
	}
	record := s.auditRecord(ctx)
	record.Outcome = string(core.CodeUnauthenticated)
	if status == fiber.StatusForbidden {
		record.Outcome = string(core.CodeForbidden)
	}
	info := webguard.RequestOf(ctx)
	if info != nil {
		record.Actor, record.Workspace = info.User, info.Workspace
	}
	_ = s.options.Audit.Record(info.In(s.root), record) // the request has already been refused; the error is logged
}
