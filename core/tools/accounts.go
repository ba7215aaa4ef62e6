package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Accounts are the linked accounts that remote apps are called with. *accounts.Manager implements it.
type Accounts interface {
	// Choose returns the account of a call; zero for an app that is not called with accounts. core.CodeLoginNeeded with
	// core.AccountNeeded when its person has to log in first.
	// core.CodeBadRequest with core.SeveralAccounts when the call must say which one it uses.
	Choose(ctx context.Context, c core.Caller, app string, w core.AccountWanted) (core.Account, error)
	// Needed completes an error with core.CodeLoginNeeded that a call with an account got.
	Needed(c core.Caller, a core.Account, err error) error
	// Await waits until the person has logged in.
	Await(ctx context.Context, c core.Caller, want core.AccountNeeded, since time.Time) (core.Account, error)
}

const (
	loginWait     = 10 * time.Minute // how long a call waits for a login
	loginProgress = 10 * time.Second // between reports to its client
	loginRequest  = "ropewalk.login" // names the request of a result that asks for a login
)

// SplitAccount splits the name of a tool that names an account, as in github_work__create_issue. Names of apps have no
// underscore. account is "" for a name without one.
func SplitAccount(name string) (tool, account string) {
	server, bare, ok := strings.Cut(name, "__")
	app, account, named := strings.Cut(server, "_")
	if !ok || !named {
		return name, ""
	}
	return app + "__" + bare, account
}

// nameWith is the name of a tool with the account that it is called with, as the audit log has it.
func (r *toolCall) nameWith() string {
	if r.account.ID == "" {
		return r.Name
	}
	return r.server + "_" + r.account.Name + "__" + r.name
}

// chooseAccount finds the account of the call. Where its person has to log in first, the call waits for that if its client
// can be asked to send the person there.
func (r *toolCall) chooseAccount(ctx context.Context) (err error) {
	if r.n.accounts == nil || r.system != nil {
		if r.Account != "" {
			return core.Errorf(core.CodeBadRequest, "%s is not called with accounts: leave out account", r.Name)
		}
		return nil
	}
	accepted := r.takeLoginAnswer()
	if r.Account == "" {
		r.named = r.takeAccountAnswer()
	}
	r.account, err = r.choose(ctx, cmp.Or(r.Account, r.named))
	if several, ok := detailsOf[core.SeveralAccounts](err); ok {
		r.account, err = r.askWhich(ctx, several, err)
	}
	if core.CodeOf(err) == core.CodeLoginNeeded {
		r.account, err = r.login(ctx, err, accepted, r.progress())
	}
	if err != nil || r.account.ID == "" {
		return err
	}
	if r.Chose != nil {
		r.Chose(r.account.Name)
	}
	return nil
}

// login has the person of the call log in. Its error is the one that says so, when the client cannot be asked to send the
// person there, or the person declines. A stateless client is asked by the result of the call, which r.reply is then.
func (r *toolCall) login(ctx context.Context, needed error, accepted bool, progress func(string)) (core.Account, error) {
	want, ok := detailsOf[core.AccountNeeded](needed)
	if !ok {
		return core.Account{}, needed
	}
	id := core.RandomID("login_")
	params, err := json.Marshal(map[string]string{
		"mode": "url", "elicitationId": id, "url": want.URL,
		"message": "The app " + want.App + " takes a login: open the page to link the account " + want.Name + ".",
	})
	if err != nil {
		return core.Account{}, err
	}
	since := time.Now().Truncate(time.Millisecond)
	limit, cancel := context.WithTimeout(ctx, loginWait)
	defer cancel()
	switch {
	case r.Stateless && accepted:
	case r.Stateless && r.stateless().AcceptsURLs():
		return core.Account{}, r.requestInput(loginRequest, params)
	case r.Session != nil && r.Asker != nil && r.Session.client.AcceptsURLs():
		if !r.sendsToLogin(limit, params) {
			return core.Account{}, needed
		}
	default:
		return core.Account{}, needed
	}
	a, err := r.awaitLogin(limit, want, since, progress)
	if err != nil && ctx.Err() == nil {
		return core.Account{}, needed
	}
	if err == nil && r.Session != nil {
		r.Session.completeElicitation(id)
	}
	return a, err
}

// sendsToLogin asks the client to send its person to the page, and reports whether the person agreed.
func (r *toolCall) sendsToLogin(ctx context.Context, params json.RawMessage) bool {
	raw, err := r.Asker.Ask(ctx, rpc.Question{Method: instance.MethodElicit, Params: params, FromServer: true})
	var answer struct{ Action string }
	return err == nil && json.Unmarshal(raw, &answer) == nil && answer.Action == "accept"
}

// awaitLogin waits for the login, and tells the client meanwhile that the call goes on.
func (r *toolCall) awaitLogin(ctx context.Context, want core.AccountNeeded, since time.Time, progress func(string)) (core.Account, error) {
	tick := time.NewTicker(loginProgress)
	defer tick.Stop()
	type outcome struct {
		account core.Account
		err     error
	}
	result := make(chan outcome, 1)
	go func() {
		a, err := r.n.accounts.Await(ctx, r.caller, want, since)
		result <- outcome{a, err}
	}()
	for {
		progress("waiting for a login at " + want.App)
		select {
		case got := <-result:
			return got.account, got.err
		case <-tick.C:
		}
	}
}

// completeElicitation reports to the client that its person has done what a page asks for.
func (s *Session) completeElicitation(id string) {
	if s.notify != nil {
		s.notify(rpc.Notification{Method: "notifications/elicitation/complete", Params: fmt.Appendf(nil, `{"elicitationId":%q}`, id)})
	}
}

// stateless returns the client of a stateless call.
func (r *toolCall) stateless() *interact.Client {
	return interact.NewClient("", true, member(r.Meta, "io.modelcontextprotocol/clientCapabilities"))
}

// requestInput has the call answered with a request for input, which a stateless client makes the call again with.
func (r *toolCall) requestInput(name string, params json.RawMessage) (err error) {
	r.reply, err = json.Marshal(map[string]any{
		"resultType": "input_required", "inputRequests": map[string]any{name: map[string]any{"method": instance.MethodElicit, "params": params}},
	})
	if r.named != "" && err == nil {
		r.reply = r.withAccount(r.reply)
	}
	return err
}

// takeLoginAnswer removes the answer to a request for a login from those that the app gets, and reports whether the person
// agreed.
func (r *toolCall) takeLoginAnswer() (accepted bool) {
	var said struct{ Action string }
	return r.takeAnswer(loginRequest, &said) && said.Action == "accept"
}

// takeAnswer removes the answer to a request of the server from those that the app gets. ok is false when there is none.
func (r *toolCall) takeAnswer(request string, into any) (ok bool) {
	answer := member(r.InputResponses, request)
	if answer == nil {
		return false
	}
	if rest, err := rawjson.Without(r.InputResponses, request); err == nil {
		r.InputResponses = rest
	}
	if members := map[string]json.RawMessage{}; json.Unmarshal(r.InputResponses, &members) == nil && len(members) == 0 {
		r.InputResponses = nil
	}
	return json.Unmarshal(answer, into) == nil
}
