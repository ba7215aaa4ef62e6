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

// Accounts manages the linked accounts that are used to call remote apps. *accounts.Manager implements it.
type Accounts interface {
	// Choose returns the account of a call, or the zero Account if the app does not use accounts. The error is
	// core.CodeLoginNeeded with core.AccountNeeded in its details if the person has to log in first, and
	// core.CodeBadRequest with core.SeveralAccounts if the call must specify an account.
	Choose(ctx context.Context, c core.Caller, app string, w core.AccountWanted) (core.Account, error)
	// Offer returns an offer with the lists that c's accounts last saw, or shared. If c has an account with the given name
	// for an app, its other accounts for that app are ignored. app and name are "" if there is none.
	Offer(c core.Caller, app, name string, shared *core.Offer) *core.Offer
	// PublishExchangeApps is called when c lists tools.
	PublishExchangeApps(c core.Caller)
	// Needed completes a core.CodeLoginNeeded error that a call with an account returned.
	Needed(c core.Caller, a core.Account, err error) error
	// Await waits until the person has logged in.
	Await(ctx context.Context, c core.Caller, want core.AccountNeeded, since time.Time) (core.Account, error)
}

const (
	loginWait     = 10 * time.Minute // how long a call waits for a login
	loginProgress = 10 * time.Second // interval of progress notifications to the client
	loginRequest  = "ropewalk.login" // the input request for a login
)

// SplitAccount splits a tool name that includes an account, such as github_work__create_issue. This is unambiguous
// because app names have no underscores. account is "" if the name includes none.
func SplitAccount(name string) (tool, account string) {
	server, bare, ok := strings.Cut(name, "__")
	app, account, named := strings.Cut(server, "_")
	if !ok || !named {
		return name, ""
	}
	return app + "__" + bare, account
}

// callAccount holds the data of an account that its calls need.
type callAccount struct {
	ID, Name  string
	Exchanged bool // see core.Account
}

func accountOf(a core.Account) callAccount { return callAccount{a.ID, a.Name, a.Exchanged} }

// nameWith returns the tool's name including the account of the call, for the audit log.
func (r *Call) nameWith() string {
	if r.account.ID == "" {
		return r.Name
	}
	return r.server + "_" + r.account.Name + "__" + r.name
}

// chooseAccount sets the account of the call. If the person has to log in first and the client can send the person to
// the login page, the call waits for that.
func (r *Call) chooseAccount(ctx context.Context) (err error) {
	if r.n.o.Accounts == nil || r.system != nil {
		if r.Account != "" {
			return core.Errorf(core.CodeBadRequest, "%s does not use accounts; leave out account", r.Name)
		}
		return nil
	}
	var accepted bool
	if len(r.InputResponses)+len(r.RequestState) > 0 {
		accepted = r.takeLoginAnswer()
		if named := r.takeAccountAnswer(); r.Account == "" {
			r.named = named
		}
	}
	a, err := r.choose(ctx, cmp.Or(r.Account, r.named))
	if several, ok := detailsOf[core.SeveralAccounts](err); ok {
		a, err = r.askWhich(ctx, several, err)
	}
	if core.CodeOf(err) == core.CodeLoginNeeded {
		a, err = r.login(ctx, err, accepted, r.progress())
	}
	r.account = accountOf(a)
	if err != nil || r.account.ID == "" {
		return err
	}
	if r.n.listsWith(r.caller, r.From, r.server, r.account.Name) != r.lists { // the account's own tool may differ
		return r.resolveFor(ctx, r.account.Name)
	}
	return nil
}

// login asks the person to log in, and returns the account. If the client cannot send the person to the login page,
// or the person declines, it returns needed. A stateless client is asked in the result of the call: login then sets
// r.reply.
func (r *Call) login(ctx context.Context, needed error, accepted bool, progress func(string)) (core.Account, error) {
	want, ok := detailsOf[core.AccountNeeded](needed)
	if !ok {
		return core.Account{}, needed
	}
	id := core.RandomID("login_")
	params, err := json.Marshal(map[string]string{
		"mode": "url", "elicitationId": id, "url": want.URL,
		"message": "The app " + want.App + " needs a login: open the page to link the account " + want.Name + ".",
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
		if !r.sendToLogin(limit, params) {
			return core.Account{}, needed
		}
	default:
		return core.Account{}, needed
	}
	r.waited = true
	a, err := r.awaitLogin(limit, want, since, progress)
	if err != nil && ctx.Err() == nil {
		return core.Account{}, needed
	}
	if err == nil && r.Session != nil {
		r.Session.completeElicitation(id)
	}
	return a, err
}

// sendToLogin asks the client to send its person to the login page, and reports whether the person agreed.
func (r *Call) sendToLogin(ctx context.Context, params json.RawMessage) bool {
	raw, err := r.Asker.Ask(ctx, rpc.Question{Method: instance.MethodElicit, Params: params, FromServer: true})
	var answer struct{ Action string }
	return err == nil && json.Unmarshal(raw, &answer) == nil && answer.Action == "accept"
}

// awaitLogin waits for the login and reports progress to the client in the meantime.
func (r *Call) awaitLogin(ctx context.Context, want core.AccountNeeded, since time.Time, progress func(string)) (core.Account, error) {
	tick := time.NewTicker(loginProgress)
	defer tick.Stop()
	type outcome struct {
		account core.Account
		err     error
	}
	result := make(chan outcome, 1)
	go func() {
		a, err := r.n.o.Accounts.Await(ctx, r.caller, want, since)
		result <- outcome{a, err}
	}()
	for {
		progress("waiting for a login to " + want.App)
		select {
		case got := <-result:
			return got.account, got.err
		case <-tick.C:
		}
	}
}

// completeElicitation notifies the client that its person has completed an interaction at a URL.
func (s *Session) completeElicitation(id string) {
	if s.notify != nil {
		s.notify(rpc.Notification{Method: "notifications/elicitation/complete", Params: fmt.Appendf(nil, `{"elicitationId":%q}`, id)})
	}
}

// stateless returns the client of a stateless call.
func (r *Call) stateless() *interact.Client {
	return interact.NewClient("", true, member(r.Meta, "io.modelcontextprotocol/clientCapabilities"))
}

// requestInput sets r.reply to a result that asks for input. A stateless client then repeats the call with the
// answer.
func (r *Call) requestInput(name string, params json.RawMessage) (err error) {
	r.reply, err = json.Marshal(map[string]any{
		"resultType": "input_required", "inputRequests": map[string]any{name: map[string]any{"method": instance.MethodElicit, "params": params}},
	})
	if r.named != "" && err == nil {
		r.reply = r.withAccount(r.reply)
	}
	return err
}

// takeLoginAnswer removes the answer to a login request from the input responses that the app receives, and reports
// whether the person agreed.
func (r *Call) takeLoginAnswer() (accepted bool) {
	var answer struct{ Action string }
	return r.takeAnswer(loginRequest, &answer) && answer.Action == "accept"
}

// takeAnswer removes the answer to one of the server's own requests from the input responses that the app receives.
// It returns false if there is none.
func (r *Call) takeAnswer(request string, into any) (ok bool) {
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
