package trust

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

const (
	maxPending    = 100              // calls of one caller that wait
	progressEvery = 10 * time.Second // for the client of a call that waits
	pollEvery     = 2 * time.Second  // for a decision whose notice was lost
)

// destructiveHint among the patterns stands for all tools that have the annotation.
const destructiveHint = "destructiveHint"

// ApprovalRecords keeps approvals. *store.Store implements it.
type ApprovalRecords interface {
	RequestApproval(ctx context.Context, a core.Approval, most int) (stored core.Approval, first bool, err error)
	TakeApproval(ctx context.Context, workspace, fingerprint string) (taken bool, err error)
	DecideApproval(ctx context.Context, workspace, id, by string, state core.ApprovalState) error
	Approval(ctx context.Context, workspace, id string) (core.Approval, error)
	Approvals(ctx context.Context, workspace, caller string) ([]core.Approval, error)
}

// ApprovalOptions is what Approvals are made of.
type ApprovalOptions struct {
	Patterns []string      // full names of tools, in which * matches any text, and destructiveHint
	Wait     time.Duration // how long a call waits for a decision; then it is answered as pending
	Expiry   time.Duration // how long a request can be decided on, and used
	Records  ApprovalRecords
	Events   Publisher
}

// Approvals lets calls wait for a person. It is safe for concurrent use.
type Approvals struct {
	o           ApprovalOptions
	destructive bool
	names       *regexp.Regexp // nil for no names

	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{} // by the id of the request
}

// NewApprovals returns Approvals under a policy.
func NewApprovals(o ApprovalOptions) *Approvals {
	a := &Approvals{o: o, waiting: map[string]map[chan struct{}]struct{}{}}
	var names []string
	for _, pattern := range o.Patterns {
		if pattern == destructiveHint {
			a.destructive = true
			continue
		}
		names = append(names, strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`))
	}
	if len(names) > 0 {
		a.names = regexp.MustCompile(`^(?s:` + strings.Join(names, "|") + `)$`)
	}
	return a
}

// Needs reports whether calls of a tool wait for a person.
func (a *Approvals) Needs(t core.Tool) bool {
	if a.names != nil && (a.names.MatchString(t.FullName()) || a.names.MatchString(t.LongName())) {
		return true
	}
	if !a.destructive || len(t.Raw) == 0 {
		return false
	}
	var tool struct {
		Annotations struct {
			DestructiveHint bool `json:"destructiveHint"`
		} `json:"annotations"`
	}
	return json.Unmarshal(t.Raw, &tool) == nil && tool.Annotations.DestructiveHint
}

// Call is a call that needs an approval.
type Call struct {
	Tool      core.Tool
	Arguments json.RawMessage
	// More is what else the app receives and a person has to agree to: answers to its questions.
	More []json.RawMessage
}

// Await returns nil when the call may be made, once: an administrator has approved a call of the same
// caller, of the same tool as it is defined now, with the same arguments. Otherwise it requests an
// approval and waits. progress is called while it waits.
//
// The errors: core.CodeApprovalPending when nobody decided in time; core.CodeApprovalRefused;
// core.CodeRateLimited when too many calls of the caller wait.
func (a *Approvals) Await(ctx context.Context, c core.Caller, call Call, progress func(message string)) error {
	print, err := fingerprint(c, call)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, a.o.Wait)
	defer cancel()
	for {
		taken, err := a.o.Records.TakeApproval(ctx, c.Workspace.ID, print)
		if taken || err != nil {
			return err
		}
		request, err := a.request(ctx, c, call, print)
		if err != nil {
			return err
		}
		if again, err := a.await(limit, request, progress); !again {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}

// request returns the pending request of a call, which it makes when there is none.
func (a *Approvals) request(ctx context.Context, c core.Caller, call Call, print string) (core.Approval, error) {
	now := time.Now()
	request, first, err := a.o.Records.RequestApproval(ctx, core.Approval{
		ID: "apr_" + rand.Text()[:16], Workspace: c.Workspace.ID, Caller: c.User, Key: c.Scope.Key, Tool: call.Tool.FullName(),
		Fingerprint: print, Arguments: call.Arguments, CreatedAt: now, ExpiresAt: now.Add(a.o.Expiry),
	}, maxPending)
	if err != nil || !first {
		return request, err
	}
	a.o.Events.Publish(core.Event{Name: core.EventApprovalRequested, Workspace: request.Workspace, Data: core.ApprovalRequested{
		ID: request.ID, Tool: request.Tool, Caller: request.Caller.ID, ExpiresAt: core.Timestamp(request.ExpiresAt),
	}})
	return request, nil
}

// await waits for a decision on a request. again says that there may be an approval to take.
func (a *Approvals) await(limit context.Context, request core.Approval, progress func(string)) (again bool, err error) {
	woken := a.enlist(request.ID)
	defer a.remove(request.ID, woken)
	tick, poll := time.NewTicker(progressEvery), time.NewTicker(pollEvery)
	defer tick.Stop()
	defer poll.Stop()
	message := "waiting for an administrator to approve " + request.Tool + " (" + request.ID + ")"
	progress(message)
	for {
		now, err := a.o.Records.Approval(limit, request.Workspace, request.ID)
		switch {
		case limit.Err() != nil:
			return false, pending(request)
		case err != nil:
			return false, err
		case now.State == core.ApprovalRefused:
			return false, core.Errorf(core.CodeApprovalRefused, "an administrator refused this call of tool %q", request.Tool).
				WithDetails(map[string]any{"approval": request.ID})
		case now.State == core.ApprovalExpired:
			return false, pending(request)
		case now.State != core.ApprovalPending:
			return true, nil
		}
		select {
		case <-limit.Done():
			return false, pending(request)
		case <-tick.C:
			progress(message)
		case <-poll.C:
		case <-woken:
		}
	}
}

func pending(request core.Approval) error {
	return core.Errorf(core.CodeApprovalPending, "tool %q needs the approval of an administrator, who has not decided yet (%s); make the same call again when it is approved, before %s",
		request.Tool, request.ID, core.Timestamp(request.ExpiresAt)).
		WithDetails(map[string]any{"approval": request.ID, "expiresAt": core.Timestamp(request.ExpiresAt)})
}

// Decide approves or refuses a call that waits. Errors: core.CodeNotFound, core.CodeForbidden,
// core.CodeAlreadyAnswered.
func (a *Approvals) Decide(ctx context.Context, c core.Caller, id string, approve bool) (core.Approval, error) {
	request, err := a.o.Records.Approval(ctx, c.Workspace.ID, id)
	if err != nil {
		return request, err
	}
	if err := c.MayApprove(request); err != nil {
		return request, err
	}
	request.State, request.DecidedBy = core.ApprovalRefused, c.User.ID
	if approve {
		request.State = core.ApprovalApproved
	}
	if err := a.o.Records.DecideApproval(ctx, c.Workspace.ID, id, c.User.ID, request.State); err != nil {
		return request, err
	}
	a.Wake(id)
	a.o.Events.Publish(core.Event{Name: core.EventApprovalDecided, Workspace: request.Workspace, Data: core.ApprovalDecided{
		ID: request.ID, Tool: request.Tool, Caller: request.Caller.ID, Decision: request.State, By: c.User.ID,
	}})
	return request, nil
}

// List returns the requests that c sees, the newest first: admins of the workspace see all, others their
// own.
func (a *Approvals) List(ctx context.Context, c core.Caller) ([]core.Approval, error) {
	caller := c.User.ID
	if c.Workspace.Role.Admin() {
		caller = ""
	}
	return a.o.Records.Approvals(ctx, c.Workspace.ID, caller)
}

// Wake has the calls that wait for a request look at it again: another server has decided on it. id is ""
// for all requests.
func (a *Approvals) Wake(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for one, waiting := range a.waiting {
		if id != "" && one != id {
			continue
		}
		for woken := range waiting {
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	}
}

func (a *Approvals) enlist(id string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	woken := make(chan struct{}, 1)
	if a.waiting[id] == nil {
		a.waiting[id] = map[chan struct{}]struct{}{}
	}
	a.waiting[id][woken] = struct{}{}
	return woken
}

func (a *Approvals) remove(id string, woken chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.waiting[id], woken); len(a.waiting[id]) == 0 {
		delete(a.waiting, id)
	}
}

// fingerprint identifies a call for its approval. Arguments that are the same JSON value are the same.
func fingerprint(c core.Caller, call Call) (string, error) {
	parts := []string{c.Workspace.ID, c.Issuer, c.Subject, c.User.ID, c.Scope.Key, call.Tool.LongName(), string(call.Tool.Raw), string(call.Tool.Schema)}
	for _, raw := range slices.Concat([]json.RawMessage{call.Arguments}, call.More) {
		if len(raw) == 0 {
			parts = append(parts, "")
			continue
		}
		value, err := decode(raw)
		if err != nil {
			return "", core.Errorf(core.CodeInvalidInput, "the arguments are not JSON: %w", err)
		}
		parts = append(parts, encode(value))
		if lone := rawjson.LoneSurrogates(raw); len(lone) > 0 { // which decode takes for one another
			parts = append(parts, strings.ToLower(strings.Join(lone, " ")))
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:]), nil
}
