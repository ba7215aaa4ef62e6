package mcphttp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// initialize opens a session: a place under the cap, the SDK's answer, the record in the store,
// and only then the session id. A session whose record cannot be kept is not opened.
func (e *Endpoint) initialize(c *fiber.Ctx, caller core.Caller, m message) error {
	if f := checkHello(m); f != nil {
		return f.of(m.id).send(c)
	}
	if f := e.live.reserve(); f != nil {
		return f.send(c)
	}
	s, answer, err := e.open(caller, m)
	if err == nil && s != nil {
		err = e.keep(s)
	}
	if err != nil {
		e.live.release()
		return e.denied(err).send(c)
	}
	if s == nil { // the SDK refused: its answer says why
		e.live.release()
		return sendJSON(c, fiber.StatusOK, answer)
	}
	c.Set(headerSession, s.wire.id)
	c.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	return sendJSON(c, fiber.StatusOK, answer)
}

// checkHello holds initialize to spec 4.10 rule 3. The SDK would open a session for somebody who says
// nothing of itself.
func checkHello(m message) *fault {
	var said struct {
		ProtocolVersion *string                     `json:"protocolVersion"`
		Capabilities    *map[string]json.RawMessage `json:"capabilities"`
		ClientInfo      *struct {
			Name    *string `json:"name"`
			Version *string `json:"version"`
		} `json:"clientInfo"`
	}
	var missing string
	switch err := json.Unmarshal(orEmpty(m.params), &said); {
	case err != nil:
		return badRequest(jsonrpc.CodeInvalidParams, "params of initialize cannot be read: "+err.Error())
	case said.ProtocolVersion == nil:
		missing = "protocolVersion, a string"
	case said.Capabilities == nil:
		missing = "capabilities, an object"
	case said.ClientInfo == nil || said.ClientInfo.Name == nil || said.ClientInfo.Version == nil:
		missing = "clientInfo, an object with a name and a version"
	default:
		return nil
	}
	return badRequest(jsonrpc.CodeInvalidParams, "params of initialize must say "+missing)
}

// open connects a new session to the SDK and lets it answer initialize. A nil session with an
// answer is a refusal by the SDK.
func (e *Endpoint) open(caller core.Caller, m message) (*session, []byte, error) {
	now := time.Now()
	s := &session{
		owner: caller, wire: newWire(e.newSessionID()), count: e.live.finish,
		calls: map[int64]*call{}, byID: map[string]int64{},
	}
	s.wire.write = s.write
	s.record = sessionstore.Record{
		ID: s.wire.id, Subject: caller.Subject, Issuer: caller.Issuer, WorkspaceID: caller.Workspace.ID, CreatedAt: now, LastAccessedAt: now,
	}
	if _, err := e.server.Connect(context.WithValue(e.root, sessionKey{}, s), s.wire, nil); err != nil {
		e.live.finish(1)
		return nil, nil, err
	}
	k := &call{message: m, caller: caller, out: newExchange(1, false)}
	_ = s.begin([]*call{k}) // the first call of a session is never refused
	s.wire.put(s.incoming(m, k))
	answer := k.out.rest()[0].text
	if !s.negotiated(answer, m.params) {
		s.end()
		return nil, answer, nil
	}
	s.place = e.o.Tools.Open(caller, tools.SessionOptions{ID: rand.Text(), Capabilities: s.capabilities, Notify: s.told})
	return s, answer, nil
}

// newSessionID is 130 random bits, after the name of this server where it has one: a proxy in front
// of several sends a session's requests to the one that has it.
func (e *Endpoint) newSessionID() string {
	if e.o.Replica == "" {
		return rand.Text()
	}
	return e.o.Replica + "-" + rand.Text()
}

// keep writes the session's record and makes the session findable; when it cannot, it ends it.
func (e *Endpoint) keep(s *session) error {
	ctx, cancel := context.WithTimeout(e.root, storeTimeout)
	defer cancel()
	e.arm(s)
	added := false
	err := e.ledger.put(ctx, s.snapshot(), func() { added = e.live.add(s) })
	if added {
		return nil
	}
	e.finish(s)
	if err == nil {
		e.ledger.drop(s.wire.id)
		return core.Errorf(core.CodeUnavailable, "the server is shutting down").WithRetryAfter(5 * time.Second)
	}
	e.log.Warn("A session was not opened: the session store could not be written", "error", err)
	return core.Wrap(core.CodeUnavailable, err, "the session store cannot be asked; try again")
}

// negotiated reads the revision out of the SDK's answer and the client's name out of its request.
func (s *session) negotiated(answer, params json.RawMessage) bool {
	var result struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	var asked struct {
		Capabilities json.RawMessage `json:"capabilities"`
		ClientInfo   struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	}
	_ = json.Unmarshal(params, &asked) // who the client says it is decides nothing
	if json.Unmarshal(answer, &result) != nil || result.Result.ProtocolVersion == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capabilities = asked.Capabilities
	s.record.ProtocolVersion = result.Result.ProtocolVersion
	s.record.ClientInfo = sessionstore.ClientInfo{Name: clip(asked.ClientInfo.Name), Version: clip(asked.ClientInfo.Version)}
	return true
}

// clip keeps records small: a client may call itself anything.
func clip(text string) string {
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "")
	}
	return text
}

// arm starts the idle clock and the watch on what the workspace offers.
func (e *Endpoint) arm(s *session) {
	s.mu.Lock()
	s.idle = time.AfterFunc(e.o.SessionTTL, func() {
		if s.expire(e.o.SessionTTL) && e.live.remove(s) {
			e.finish(s)
			e.ledger.drop(s.wire.id)
			e.log.Debug("A session ended after its idle time", "workspace", s.owner.Workspace.ID)
		}
	})
	s.mu.Unlock()
	e.hub.join(s.owner.Workspace.ID, s)
}

// finish ends a session that was taken out of the live set.
func (e *Endpoint) finish(s *session) {
	s.end()
	e.hub.leave(s.owner.Workspace.ID, s)
	e.endings.end(s.place)
}
