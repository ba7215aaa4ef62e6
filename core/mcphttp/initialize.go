package mcphttp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

type helloParams struct {
	ProtocolVersion *string          `json:"protocolVersion"`
	Capabilities    *json.RawMessage `json:"capabilities"`
	ClientInfo      *struct {
		Name    *string `json:"name"`
		Version *string `json:"version"`
	} `json:"clientInfo"`
}

// initialize opens a session. It reserves a place under the cap, stores the record, and only then sends the session ID.
// A session whose record cannot be stored is not opened.
func (e *Endpoint) initialize(c *fiber.Ctx, caller core.Caller, m Message) error {
	hello, f := readHello(&m)
	if f != nil {
		return f.of(m.ID).send(c)
	}
	if err := e.live.Reserve(caller.User.ID); err != nil {
		return refusedBySession(err, "too many sessions are open on this server; close one or try again later").send(c)
	}
	s, err := e.open(c.UserContext(), caller, hello)
	e.live.EndCalls(1)
	if err != nil {
		e.live.Release(caller.User.ID)
		return e.denied(err).send(c)
	}
	result := encode(&mcp.InitializeResult{
		ProtocolVersion: s.Revision(), Capabilities: capabilities(), ServerInfo: e.implementation(), Instructions: composeInstructions(e.o.Tools.Instructions(caller)),
	})
	c.Set(headerSession, s.ID)
	c.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	return sendJSON(c, fiber.StatusOK, rpc.Result(m.ID, result))
}

// maxCapabilities is the maximum size in bytes of a client's capabilities, which each session keeps.
const maxCapabilities = 64 << 10

// readHello reads the params of initialize. It refuses a client that does not identify itself.
func readHello(m *Message) (hello helloParams, f *fault) {
	var missing string
	switch err := json.Unmarshal(orEmpty(m.Params), &hello); {
	case err != nil:
		return hello, badRequest(rpc.CodeInvalidParams, wrongType("params", err))
	case hello.ProtocolVersion == nil:
		missing = "protocolVersion, a string"
	case hello.Capabilities == nil || (*hello.Capabilities)[0] != '{':
		missing = "capabilities, an object"
	case len(*hello.Capabilities) > maxCapabilities:
		missing = fmt.Sprintf("capabilities of at most %d KiB", maxCapabilities>>10)
	case hello.ClientInfo == nil || hello.ClientInfo.Name == nil || hello.ClientInfo.Version == nil:
		missing = "clientInfo, an object with a name and a version"
	default:
		if err := json.Unmarshal(*hello.Capabilities, &mcp.ClientCapabilities{}); err != nil {
			return hello, badRequest(rpc.CodeInvalidParams, wrongType("params.capabilities", err))
		}
		return hello, nil
	}
	return hello, badRequest(rpc.CodeInvalidParams, "the params of initialize must have "+missing)
}

// wrongType returns the message for a member of initialize's params that could not be decoded.
func wrongType(member string, err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s.%s of initialize must not be of type %s", member, e.Field, e.Value)
	}
	return member + " of initialize cannot be read"
}

// open creates a session and makes it findable. The session uses the revision that the client requests, if that
// revision has sessions, or else the newest revision with sessions.
func (e *Endpoint) open(ctx context.Context, caller core.Caller, hello helloParams) (*session, error) {
	now, revision := time.Now(), revisions()[0]
	if hasSessions(*hello.ProtocolVersion) {
		revision = *hello.ProtocolVersion
	}
	s := newSession(caller, sessionstore.Record{
		ID: e.newSessionID(), Subject: caller.Subject, Issuer: caller.Issuer, WorkspaceID: caller.Workspace.ID,
		CreatedAt: now, LastAccessedAt: now, ProtocolVersion: revision,
		ClientInfo: sessionstore.ClientInfo{Name: clip(*hello.ClientInfo.Name), Version: clip(*hello.ClientInfo.Version)},
	}, *hello.Capabilities)
	e.attach(s)
	return s, e.store(ctx, s)
}

// attach gives a session its tools session, its idle timer, and notifications of list changes.
func (e *Endpoint) attach(s *session) {
	s.Tools = e.o.Tools.Open(s.Owner, tools.SessionOptions{ID: rand.Text(), Capabilities: s.Capabilities, Notify: s.Notify})
	s.ExpireAfter(e.o.SessionTTL, func() {
		if e.covered(s, time.Now()) { // otherwise another server may have the session
			e.writer.Drop(s.ID)
		}
		if e.live.Remove(s) {
			e.closeSession(s, sessionClosed)
			e.log.Debug("session expired", "workspace", s.Owner.Workspace.ID)
		}
	})
	e.hub.join(s.Owner, tools.From{Session: s.Tools}, s)
}

// store writes the session's record and makes the session findable. If that fails, it ends the session.
func (e *Endpoint) store(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	added := false
	lease, err := e.lease.Acquire(ctx)
	if err == nil {
		rec := s.RecordFor(lease)
		s.Keep(rec)
		err = e.writer.Put(ctx, rec, func() { added = e.live.Add(s) })
	}
	if added {
		return nil
	}
	e.closeSession(s, sessionClosed)
	if err == nil {
		e.writer.Drop(s.ID)
		return core.Errorf(core.CodeUnavailable, "the server is shutting down").WithRetryAfter(5 * time.Second)
	}
	e.log.Warn("session not opened: cannot write to the session store", "error", err)
	return core.Wrap(core.CodeUnavailable, err, "the session store is unavailable; try again")
}

// newSessionID returns a session ID with 130 random bits. If this server has a name, the name comes first, so that a
// proxy can send a session's requests to the server that has it.
func (e *Endpoint) newSessionID() string {
	if e.o.Replica == "" {
		return rand.Text()
	}
	return e.o.Replica + "-" + rand.Text()
}

// clip shortens a client's text to keep records and messages small, because a client may send names of any length.
func clip(text string) string {
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "")
	}
	return text
}

// Reasons why in-flight calls end with their session.
const (
	sessionClosed = "the session was closed"
	sessionMoved  = "the session was taken over by another server; send the request again"
)

// closeSession ends a session that was removed from the live set. Its in-flight calls get an error with the message
// why.
func (e *Endpoint) closeSession(s *session, why string) {
	for _, k := range s.Close() {
		k.out.Answer(errorBody(k.ID, &rpc.Error{Code: codeServer, Message: why}))
		e.live.EndCalls(1)
	}
	e.hub.leave(s.Owner.Workspace.ID, s)
	e.closing.start(s.Tools)
}
