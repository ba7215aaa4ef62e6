package trust

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

const (
	maxPending    = 100              // waiting calls per caller
	maxArguments  = 256 << 10        // bytes of the arguments of a call that waits: they are stored and listed
	progressEvery = 10 * time.Second // how often the client of a waiting call receives progress
	pollEvery     = 2 * time.Second  // how often to look for a decision, in case its notification was lost
	expireEvery   = time.Minute      // how often to look for approvals that expired on peer servers that have stopped
	endTimeout    = 10 * time.Second // time limit for ending the approval of a call that has ended
)

// destructiveHint among the patterns stands for all tools that have the annotation.
const destructiveHint = "destructiveHint"

// ApprovalRecords keeps approvals. *store.Store implements it.
type ApprovalRecords interface {
	RequestApproval(ctx context.Context, a core.Approval, limit int) (stored core.Approval, first bool, err error)
	TakeApproval(ctx context.Context, workspace, fingerprint string) (taken bool, err error)
	DecideApproval(ctx context.Context, a core.Approval) error
	CancelApproval(ctx context.Context, workspace, id string) (ended bool, err error)
	ExpireApprovals(ctx context.Context) (expired []core.Approval, next time.Time, err error)
	Approval(ctx context.Context, workspace, id string) (core.Approval, error)
	Approvals(ctx context.Context, workspace string, q core.ApprovalQuery) (core.ApprovalPage, error)
	HasStandingApproval(ctx context.Context, workspace, tool, definition string) (bool, error)
	StandingApprovals(ctx context.Context, workspace string) ([]core.StandingApproval, error)
	WithdrawApproval(ctx context.Context, workspace, id string, shown func(tool string) bool) (core.StandingApproval, error)
}

// ApprovalOptions configure Approvals.
type ApprovalOptions struct {
	Patterns []string      // full names of tools, in which * matches any text, and destructiveHint
	Wait     time.Duration // how long a call waits for a decision before it is reported as pending
	Expiry   time.Duration // how long a request can be decided on, and an approval used
	Records  ApprovalRecords
	Events   Publisher
	Logger   hclog.Logger
	Shows    Shows
}

// Shows reports whether a caller sees a tool under all of these names: the full names if server is "", otherwise the
// app's own. nil means always. Anything about a hidden tool is treated as unknown.
type Shows func(c core.Caller, server string, names ...string) bool

func (s Shows) tool(c core.Caller, server string, names ...string) bool {
	return s == nil || s(c, server, names...)
}

// Approvals makes calls wait for a person's approval. It is safe for concurrent use.
type Approvals struct {
	o           ApprovalOptions
	destructive bool
	names       *regexp.Regexp // may be nil
	requested   chan struct{}  // receives when there is something new to expire

	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{} // by the id of the request
}

// NewApprovals returns Approvals with a policy.
func NewApprovals(o ApprovalOptions) *Approvals {
	a := &Approvals{o: o, requested: make(chan struct{}, 1), waiting: map[string]map[chan struct{}]struct{}{}}
	a.destructive = slices.Contains(o.Patterns, destructiveHint)
	a.names = core.NamePattern(slices.DeleteFunc(slices.Clone(o.Patterns), func(pattern string) bool { return pattern == destructiveHint }))
	return a
}

// Needs reports whether calls to a tool need approval.
func (a *Approvals) Needs(t core.Tool) bool {
	if a.names != nil && (a.names.MatchString(t.FullName()) || a.names.MatchString(t.LongName())) {
		return true
	}
	return a.destructive && len(t.Raw) > 0 && isDestructive(t)
}

// isDestructive reports whether a tool has the annotation destructiveHint.
func isDestructive(t core.Tool) bool {
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
	Account   string // the name of the account that the app is called with; "" for none
	// More holds other data that the app receives and a person has to agree to: answers to its questions.
	More []json.RawMessage
}

// Await returns nil if the call may be made. This is the case if an administrator has approved all calls to the tool,
// or a call by the same caller to the same tool, with its current definition and the same arguments. The approval of a
// single call can be used only once. Otherwise it requests an approval and waits. progress is called while it waits. If
// ctx ends in the meantime, so does the approval, unless another call waits for it.
//
// Errors: core.CodeApprovalPending if nobody decided in time; core.CodeApprovalRefused; core.CodeInvalidInput for
// arguments that are too large to wait; core.CodeRateLimited if too many of the caller's calls are waiting.
func (a *Approvals) Await(ctx context.Context, c core.Caller, call Call, progress func(message string)) error {
	print, err := fingerprint(c, call)
	if err != nil {
		return err
	}
	if allowed, err := a.isAllowed(ctx, c, call.Tool); allowed || err != nil {
		return err
	}
	if len(call.Arguments) > maxArguments {
		return core.Errorf(core.CodeInvalidInput, "each call to tool %q needs an administrator's approval, and its arguments must then have at most %d KiB; these have %d bytes",
			call.Tool.FullName(), maxArguments>>10, len(call.Arguments))
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
		again, err := a.await(limit, request, progress)
		if ctx.Err() != nil {
			a.cancel(ctx, request)
			return ctx.Err()
		}
		if !again {
			return err
		}
	}
}

// request returns the pending request for a call, creating it if necessary.
func (a *Approvals) request(ctx context.Context, c core.Caller, call Call, print string) (request core.Approval, err error) {
	first := false
	for request.ID == "" || request.State == core.ApprovalExpired {
		if _, err := a.expire(ctx); err != nil {
			return request, err
		}
		now := time.Now()
		request, first, err = a.o.Records.RequestApproval(ctx, core.Approval{
			ID: "apr_" + rand.Text()[:16], Workspace: c.Workspace.ID, Caller: c.User, Key: c.Scope.Key, Tool: call.Tool.FullName(),
			Fingerprint: print, Definition: definitionOf(call.Tool), Destructive: isDestructive(call.Tool), Account: call.Account, Arguments: call.Arguments, CreatedAt: now, ExpiresAt: now.Add(a.o.Expiry),
		}, maxPending)
		if err != nil {
			return request, err
		}
	}
	if !first {
		return request, nil
	}
	select {
	case a.requested <- struct{}{}:
	default: // a notification is already pending
	}
	a.o.Events.Publish(core.Event{Name: core.EventApprovalRequested, Workspace: request.Workspace, Data: core.ApprovalRequested{
		ID: request.ID, Tool: request.Tool, Caller: request.Caller.ID, ExpiresAt: core.Timestamp(request.ExpiresAt),
	}})
	return request, nil
}

// await waits for a decision on a request. again reports that there may be an approval to use.
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
			return false, refused(now)
		case now.State == core.ApprovalExpired:
			return false, core.Errorf(core.CodeApprovalPending, "tool %q needs an administrator's approval, and nobody decided in time (%s); make the same call again to ask again",
				request.Tool, request.ID).WithDetails(map[string]any{"approval": request.ID, "expiresAt": core.Timestamp(request.ExpiresAt)})
		case now.State == core.ApprovalCancelled:
			return false, core.Errorf(core.CodeApprovalRefused, "the call to tool %q is no longer waiting for an approval, because its app was uninstalled (%s)", request.Tool, request.ID).
				WithDetails(map[string]any{"approval": request.ID})
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
	return core.Errorf(core.CodeApprovalPending, "tool %q needs an administrator's approval, which is still pending (%s); make the same call again once it is approved, before %s",
		request.Tool, request.ID, core.Timestamp(request.ExpiresAt)).
		WithDetails(map[string]any{"approval": request.ID, "expiresAt": core.Timestamp(request.ExpiresAt)})
}

func refused(request core.Approval) error {
	reason := ""
	if request.Reason != "" {
		reason = ": " + request.Reason
	}
	return core.Errorf(core.CodeApprovalRefused, "an administrator refused this call to tool %q%s", request.Tool, reason).
		WithDetails(map[string]any{"approval": request.ID})
}

// Decide approves or refuses a waiting call. Errors: core.CodeBadRequest, core.CodeNotFound,
// core.CodeForbidden, core.CodeAlreadyAnswered.
func (a *Approvals) Decide(ctx context.Context, c core.Caller, id string, d core.Decision) (core.Approval, error) {
	if d.Reason = strings.TrimSpace(d.Reason); utf8.RuneCountInString(d.Reason) > core.MaxReason {
		return core.Approval{}, core.Errorf(core.CodeBadRequest, "reason is longer than %d characters; shorten it", core.MaxReason)
	}
	request, err := a.o.Records.Approval(ctx, c.Workspace.ID, id)
	if err == nil && !a.o.Shows.tool(c, "", request.Tool) {
		err = core.Errorf(core.CodeNotFound, "there is no call %.100q waiting for approval", id)
	}
	if err != nil {
		return core.Approval{}, err
	}
	may := c.MayApprove
	if d.Always {
		may = c.MayAlwaysApprove
	}
	if err := may(request); err != nil {
		return request, err
	}
	request.State, request.DecidedBy, request.DecidedAt, request.Reason = core.ApprovalRefused, c.User, time.Now(), d.Reason
	if d.Approve {
		request.State, request.Always = core.ApprovalApproved, d.Always
	}
	if err := a.o.Records.DecideApproval(ctx, request); err != nil {
		return request, err
	}
	a.Wake(id)
	a.o.Events.Publish(core.Event{Name: core.EventApprovalDecided, Workspace: request.Workspace, Data: core.ApprovalDecided{
		ID: request.ID, Tool: request.Tool, Caller: request.Caller.ID, Decision: request.State, By: c.User.ID, Always: request.Always,
	}})
	if request.Always {
		a.approveOthers(ctx, c, request)
	}
	return request, nil
}

// List returns a page of the requests that c may see, newest first: workspace admins see all, others their own. A page
// is shorter than its limit if some of its tools are hidden from c.
func (a *Approvals) List(ctx context.Context, c core.Caller, q core.ApprovalQuery) (core.ApprovalPage, error) {
	if !c.Workspace.Role.Admin() {
		q.Caller = c.User.ID
	}
	page, err := a.o.Records.Approvals(ctx, c.Workspace.ID, q)
	page.Approvals = slices.DeleteFunc(page.Approvals, func(one core.Approval) bool { return !a.o.Shows.tool(c, "", one.Tool) })
	return page, err
}

// cancel ends the approval of a call whose context has ended, unless another call waits for it.
func (a *Approvals) cancel(ctx context.Context, request core.Approval) {
	a.mu.Lock()
	wanted := len(a.waiting[request.ID]) > 0
	a.mu.Unlock()
	if wanted {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	ended, err := a.o.Records.CancelApproval(ctx, request.Workspace, request.ID)
	if err != nil {
		a.o.Logger.Warn("could not end the approval of a cancelled call; it will expire", "approval", request.ID, "error", err)
	}
	if ended {
		a.announceEnd(request, core.ApprovalCancelled)
	}
}

// Run ends approvals when they expire. It returns when ctx ends.
func (a *Approvals) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := a.expire(ctx)
		if err != nil && ctx.Err() == nil {
			a.o.Logger.Warn("could not end expired approvals; trying again later", "error", err)
		}
		wait := expireEvery
		if !next.IsZero() {
			wait = min(wait, max(time.Until(next), 0))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-a.requested:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// expire ends the approvals that have expired, and returns when the next one will expire, or the zero time.
func (a *Approvals) expire(ctx context.Context) (next time.Time, err error) {
	expired, next, err := a.o.Records.ExpireApprovals(ctx)
	for _, request := range expired {
		a.announceEnd(request, core.ApprovalExpired)
	}
	return next, err
}

func (a *Approvals) announceEnd(request core.Approval, state core.ApprovalState) {
	a.Wake(request.ID)
	a.o.Events.Publish(core.Event{Name: core.EventApprovalEnded, Workspace: request.Workspace, Data: core.ApprovalEnded{
		ID: request.ID, Tool: request.Tool, Caller: request.Caller.ID, State: state,
	}})
}

// Wake makes the calls that wait for a request check it again. It is called after the request was decided on or ended,
// here or on another server. id is "" for all requests.
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

// fingerprint identifies a call for its approval. Arguments that are equal as JSON values have the same fingerprint.
func fingerprint(c core.Caller, call Call) (string, error) {
	parts := []string{c.Workspace.ID, c.User.ID, c.Scope.Key, call.Tool.LongName(), string(call.Tool.Raw), string(call.Tool.Schema)}
	for _, raw := range slices.Concat([]json.RawMessage{call.Arguments}, call.More) {
		if len(raw) == 0 {
			parts = append(parts, "")
			continue
		}
		// An approver would see only one of two members with the same name, and an app might use the other.
		if err := rawjson.CheckUnique(raw); errors.Is(err, rawjson.ErrDuplicate) {
			return "", core.Errorf(core.CodeInvalidInput, "the arguments cannot be approved: %w", err)
		}
		value, err := rawjson.Decode(raw)
		if err != nil {
			return "", core.Errorf(core.CodeInvalidInput, "the arguments are not JSON: %w", err)
		}
		parts = append(parts, encode(value))
		if lone := rawjson.LoneSurrogates(raw); len(lone) > 0 { // decode does not distinguish them
			parts = append(parts, strings.ToLower(strings.Join(lone, " ")))
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:]), nil
}
