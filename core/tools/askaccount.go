package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// AccountMemory remembers, for one conversation, which of several accounts a person has chosen for an app.
type AccountMemory interface {
	core.ChosenAccounts
	ChooseAccount(ctx context.Context, app, account string) error
}

// chosenAccounts is an AccountMemory that lasts as long as its session.
type chosenAccounts struct {
	mu    sync.Mutex
	byApp map[string]string
}

// ChosenAccount implements core.ChosenAccounts.
func (c *chosenAccounts) ChosenAccount(_ context.Context, app string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byApp[app], nil
}

// ChooseAccount implements AccountMemory.
func (c *chosenAccounts) ChooseAccount(_ context.Context, app, account string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byApp[app] = account
	return nil
}

// chosen returns the session's record of chosen accounts, or nil if there is no session.
func (s *Session) chosen() core.ChosenAccounts {
	if s == nil {
		return nil
	}
	return s.accounts
}

const (
	accountRequest = "ropewalk.account"  // the input request that asks which account to use
	accountState   = "ropewalk.account " // prefix of a requestState with the account's name, followed by the app's own state
)

// choose returns the account of the call. name may be "".
func (r *Call) choose(ctx context.Context, name string) (core.Account, error) {
	return r.n.o.Accounts.Choose(ctx, r.caller, r.server, core.AccountWanted{Name: name, ReadOnly: r.tool.ReadOnly, Tool: r.name, Chosen: r.Session.chosen()})
}

// askWhich asks the person which of several accounts the call should use. If the client cannot ask, it returns unnamed,
// an error that says that the call must specify an account. A stateless client is asked in the result of the call:
// askWhich then sets r.reply.
func (r *Call) askWhich(ctx context.Context, several core.SeveralAccounts, unnamed error) (core.Account, error) {
	params, err := json.Marshal(map[string]any{
		"mode": "form", "message": "You have several accounts for " + several.App + ". Which one should " + r.Name + " use? Your choice applies to this conversation.",
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"account"},
			"properties": map[string]any{"account": map[string]any{"type": "string", "title": "Account", "enum": several.Names}},
		},
	})
	switch {
	case err != nil:
		return core.Account{}, err
	case r.Stateless && r.stateless().AcceptsForms():
		return core.Account{}, r.requestInput(accountRequest, params)
	case r.Stateless || r.Session == nil || r.Asker == nil || !r.Session.client.AcceptsForms():
		return core.Account{}, unnamed
	}
	select { // concurrent calls ask only once
	case r.Session.asking <- struct{}{}:
	case <-ctx.Done():
		return core.Account{}, context.Cause(ctx)
	}
	defer func() { <-r.Session.asking }()
	a, err := r.choose(ctx, "")
	if _, still := detailsOf[core.SeveralAccounts](err); !still {
		return a, err
	}
	r.waited = true
	raw, err := r.Asker.Ask(ctx, rpc.Question{Method: instance.MethodElicit, Params: params, FromServer: true})
	if err != nil {
		return core.Account{}, cmp.Or(context.Cause(ctx), unnamed)
	}
	var answer accountAnswer
	if json.Unmarshal(raw, &answer) != nil || answer.name() == "" {
		return core.Account{}, core.Errorf(core.CodeBadRequest, "%s was not called: the user was asked which account for %s to use, and did not choose one", r.Name, several.App)
	}
	if a, err = r.choose(ctx, answer.name()); err != nil {
		return a, err
	}
	if err := r.Session.accounts.ChooseAccount(ctx, r.server, a.ID); err != nil {
		r.n.o.Logger.Warn("could not remember the account that a person chose; the next call asks again", "app", r.server, "error", err)
	}
	return a, nil
}

// accountAnswer is the person's answer to the form from askWhich.
type accountAnswer struct {
	Action  string
	Content struct{ Account string }
}

// name returns the chosen account, or "" if none was chosen.
func (a accountAnswer) name() string {
	if a.Action != "accept" {
		return ""
	}
	return a.Content.Account
}

// takeAccountAnswer returns the account that the person of a stateless client has chosen: in the answer that came
// with this call, or in an earlier one, which is recorded in the request state. It removes both, so that the app does
// not see them.
func (r *Call) takeAccountAnswer() string {
	var answer accountAnswer
	if r.takeAnswer(accountRequest, &answer) {
		return answer.name()
	}
	var text string
	if json.Unmarshal(r.RequestState, &text) != nil {
		return ""
	}
	rest, ok := strings.CutPrefix(text, accountState)
	if !ok {
		return ""
	}
	name, state, _ := strings.Cut(rest, " ")
	if r.RequestState = nil; rawjson.Valid([]byte(state)) {
		r.RequestState = json.RawMessage(state)
	}
	return name
}

// guardInput checks an app's result that asks for input, so that only the person can choose the account of the next
// call. It rejects a request under one of this server's own names, and makes sure that the app's own state cannot be
// mistaken for this server's.
func (r *Call) guardInput(result json.RawMessage) (json.RawMessage, error) {
	requests := member(result, "inputRequests")
	for _, own := range []string{accountRequest, loginRequest} {
		if member(requests, own) != nil {
			return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the app asks for input under the name " + own + ", which is reserved for this server"}
		}
	}
	var state string
	_ = json.Unmarshal(member(result, "requestState"), &state) // a malformed result is treated as one without state
	if r.named != "" || strings.HasPrefix(state, accountState) {
		return r.withAccount(result), nil
	}
	return result, nil
}

// withAccount adds the chosen account, if any, to the request state of a result that asks for input. The next call
// returns the state, but not the answer itself.
func (r *Call) withAccount(result json.RawMessage) json.RawMessage {
	return orUnchanged(result, func() (json.RawMessage, error) {
		state := accountState + r.named + " " + string(member(result, "requestState"))
		return rawjson.Set(result, rawjson.Member{Name: "requestState", Value: rawjson.Quote(state)})
	})
}

// detailsOf returns the details of an error if they have type T.
func detailsOf[T any](err error) (details T, ok bool) {
	known, isError := errors.AsType[*core.Error](err)
	if !isError {
		return details, false
	}
	details, ok = known.Details.(T)
	return details, ok
}
