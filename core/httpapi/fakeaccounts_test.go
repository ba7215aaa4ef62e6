package httpapi

import (
	"context"
	"net/url"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/accounts"
)

// fakeAccounts has one account, acc_1, for the app far.
type fakeAccounts struct{}

func (fakeAccounts) one() core.Account {
	return core.Account{ID: "acc_1", Workspace: core.DefaultWorkspaceID, Owner: "usr_owner", App: "far", Name: "main", Issuer: "https://idp.example", State: core.AccountActive, Scopes: []string{"read"}, Default: true, LinkedAt: time.Now()}
}

func (f fakeAccounts) List(context.Context, core.Caller) ([]core.Account, error) {
	return []core.Account{f.one()}, nil
}

func (f fakeAccounts) find(id string) (core.Account, error) {
	if id != f.one().ID {
		return core.Account{}, core.Errorf(core.CodeNotFound, "no such account")
	}
	return f.one(), nil
}

func (f fakeAccounts) Change(_ context.Context, _ core.Caller, id string, _ core.AccountChange) (core.Account, error) {
	return f.find(id)
}

func (f fakeAccounts) Unlink(_ context.Context, _ core.Caller, id string) error {
	_, err := f.find(id)
	return err
}

func (fakeAccounts) LinkURL(c core.Caller, app, name string, _ []string) string {
	return "http://127.0.0.1:1" + accounts.LinkPath + "?" + url.Values{"app": {app}, "account": {name}, "for": {c.User.ID}}.Encode()
}

func (fakeAccounts) MayLink(_ context.Context, _ core.Caller, app string) error {
	if app != "far" {
		return core.Errorf(core.CodeNotFound, "no app named %s is installed", app)
	}
	return nil
}

func (f fakeAccounts) Prepare(ctx context.Context, c core.Caller, w accounts.Want) (accounts.Consent, error) {
	return accounts.Consent{App: w.App, Address: "https://far.example/mcp", Issuer: "https://idp.example", Authorize: "https://idp.example/authorize", Name: "main", Scopes: []string{"read"}, Device: true}, f.MayLink(ctx, c, w.App)
}

func (f fakeAccounts) Begin(ctx context.Context, c core.Caller, w accounts.Want, redirectURI string) (accounts.Start, error) {
	if consent, _ := f.Prepare(ctx, c, w); w.Agreed != consent.Digest() {
		return accounts.Start{}, core.Errorf(core.CodeConflict, "app %s asks for something else", w.App)
	}
	return accounts.Start{URL: "https://idp.example/authorize?redirect_uri=" + url.QueryEscape(redirectURI), Binding: "binding"}, f.MayLink(ctx, c, w.App)
}

func (f fakeAccounts) BeginDevice(ctx context.Context, c core.Caller, w accounts.Want) (accounts.Device, error) {
	_, err := f.Begin(ctx, c, w, "")
	return accounts.Device{Login: "login", URL: "https://idp.example/enter", Code: "WDJB-MJHT", Interval: 1500 * time.Millisecond, Expires: time.Unix(1, 0)}, err
}

func (f fakeAccounts) FinishDevice(_ context.Context, _ core.Caller, login string) (core.Account, time.Duration, error) {
	switch login {
	case "login":
		return f.one(), 0, nil
	case "early":
		return core.Account{}, time.Second, nil
	}
	return core.Account{}, 0, core.Errorf(core.CodeForbidden, "this login is not in progress")
}

func (f fakeAccounts) Finish(ctx context.Context, caller func(context.Context, string) (core.Caller, error), answer accounts.Response) (core.Account, accounts.Start, error) {
	if answer.State != "state" || answer.Binding != "binding" {
		return core.Account{}, accounts.Start{}, core.Errorf(core.CodeForbidden, "this login is not in progress")
	}
	if answer.Error == "invalid_scope" {
		return core.Account{}, accounts.Start{URL: "https://idp.example/authorize?again", Binding: "binding-2"}, nil
	}
	_, err := caller(ctx, core.DefaultWorkspaceID)
	return f.one(), accounts.Start{}, err
}

func (fakeAccounts) Document() (accounts.ClientDocument, error) {
	return accounts.ClientDocument{}, core.Errorf(core.CodeNotFound, "this server has no public https address (http.baseUrl)")
}
