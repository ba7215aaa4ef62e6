package interact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Resume resumes a suspended call if c carries the input for one. Only its owner can resume it, with the same app,
// method and target. To anyone else the call does not exist.
func (d *Dialog) Resume(ctx context.Context, c *Call) (result json.RawMessage, resumed bool, err error) {
	var p struct {
		RequestState   string                     `json:"requestState"`
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
		Meta           struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if bytes.Contains(c.Params, []byte(statePrefix)) { // few requests contain it
		_ = json.Unmarshal(c.Params, &p) // the app reports unreadable params
	}
	if !strings.HasPrefix(p.RequestState, statePrefix) {
		return nil, false, nil
	}
	calls := d.broker.suspended
	s := calls.removeIf(p.RequestState, func(s *suspendedCall) bool {
		return s.isOwnedBy(c) && s.server == d.server() && s.method == c.Method && s.target == targetOf(c.Params)
	})
	if s == nil {
		result, err := d.resumeOnPeer(ctx, p.RequestState, c)
		return result, true, err
	}
	if unanswered := s.respond(p.InputResponses, withToken(c.Notify, p.Meta.Token)); unanswered {
		result, err := calls.suspend(s)
		return result, true, err
	}
	result, err = calls.wait(ctx, s)
	return result, true, err
}

// isOwnedBy reports whether c comes from the client that made the call. A server that runs the previous version
// forwards calls without an Owner.
func (s *suspendedCall) isOwnedBy(c *Call) bool {
	if c.Owner == "" {
		return s.issued == c.Issued
	}
	return s.owner == c.Owner
}

// withToken forwards the app's notifications to the request that resumed the call. The app still uses the progress
// token of the first request, so withToken replaces it with the new one.
func withToken(notify func(rpc.Notification), token json.RawMessage) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		if n.Method == "notifications/progress" {
			if token == nil {
				return
			}
			n = n.WithToken(token)
		}
		notify(n)
	}
}

// A client can resume a suspended call on any server of a cluster. The requestState names the server that has the call,
// and the server that gets the request forwards it there.

// PeerTopic is the topic of peer requests about suspended calls. It is empty because servers from before topics existed
// neither send nor expect one, and these requests must work during an upgrade.
const PeerTopic = ""

// PeerResume is a client's request to resume a call, forwarded to the server that has the call.
type PeerResume struct {
	Workspace string          `json:"workspace"`
	App       string          `json:"app"`
	Issued    string          `json:"owner"` // the previous version reads it under this name
	Owner     string          `json:"principal,omitempty"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
}

// peerResult is the answer to a PeerResume.
type peerResult struct {
	Result json.RawMessage `json:"result,omitempty"`
	RPC    *rpc.Error      `json:"rpc,omitempty"`
	Code   core.Code       `json:"code,omitempty"`
	Text   string          `json:"text,omitempty"`
}

// errUnknownState returns the error for a requestState whose call does not exist, has expired, or belongs to someone
// else.
func errUnknownState() error {
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: "requestState is unknown or has expired: make the call again"}
}

// statePrefixOf returns the prefix of the requestState of every call that a server suspends.
func statePrefixOf(server string) string {
	if server == "" {
		return statePrefix
	}
	return statePrefix + server + "."
}

func (d *Dialog) resumeOnPeer(ctx context.Context, state string, c *Call) (json.RawMessage, error) {
	peers := d.broker.o.Peers
	server, _, named := strings.Cut(strings.TrimPrefix(state, statePrefix), ".")
	if peers == nil || !named || server == peers.ServerID() {
		return nil, errUnknownState()
	}
	if d.broker.peerRequests.Take(c.Sender) != nil {
		return nil, core.Errorf(core.CodeRateLimited, "too many of your calls are being resumed on other servers: the limit is %d", d.broker.peerRequests.Share()).WithRetryAfter(time.Second)
	}
	defer d.broker.peerRequests.Release(c.Sender)
	request, err := json.Marshal(PeerResume{d.key.Workspace, d.key.Name, c.Issued, c.Owner, c.Method, c.Params})
	if err != nil {
		return nil, err
	}
	answer, err := peers.RequestPeer(ctx, server, PeerTopic, request)
	if core.CodeOf(err) == core.CodeNotFound {
		return nil, errUnknownState()
	}
	if err != nil {
		return nil, err
	}
	var r peerResult
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil, err
	}
	switch {
	case r.RPC != nil:
		return nil, r.RPC
	case r.Code != "":
		return nil, core.Errorf(r.Code, "%s", r.Text)
	}
	return r.Result, nil
}

// AnswerPeer answers a peer request by resuming a call that is suspended on this server. find returns the Dialog of an
// app.
func AnswerPeer(ctx context.Context, request json.RawMessage, find func(AppRef) (*Dialog, error)) json.RawMessage {
	var p PeerResume
	var r peerResult
	err := json.Unmarshal(request, &p)
	if err == nil {
		r.Result, err = resumeFor(ctx, p, find)
	}
	if rpcErr, ok := errors.AsType[*rpc.Error](err); ok {
		r.RPC = rpcErr
	} else if err != nil {
		r.Code, r.Text = core.CodeOf(err), core.TextOf(err)
	}
	answer, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return answer
}

func resumeFor(ctx context.Context, p PeerResume, find func(AppRef) (*Dialog, error)) (json.RawMessage, error) {
	d, err := find(AppRef{p.Workspace, p.App})
	if err != nil {
		return nil, err
	}
	result, resumed, err := d.Resume(ctx, &Call{Request: link.Request{Method: p.Method, Params: p.Params}, Owner: p.Owner, Issued: p.Issued})
	if !resumed {
		return nil, errUnknownState()
	}
	return result, err
}
