// Package accountapi serves the routes for linked accounts: listing and changing them, and the pages on which a person
// links one.
//
// It owns the pages, the cookie that ties a login to its browser, and the redirects. Package accounts owns the flow
// with the authorization servers and the rules about who may link what.
package accountapi

import (
	"context"
	"math"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/accounts"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// Accounts manages the linked accounts. *accounts.Manager implements it. Its errors are core.Errors.
type Accounts interface {
	List(ctx context.Context, c core.Caller) ([]core.Account, error)
	Change(ctx context.Context, c core.Caller, id string, change core.AccountChange) (core.Account, error)
	Unlink(ctx context.Context, c core.Caller, id string) error
	LinkURL(c core.Caller, app, name string, scopes []string) string
	MayLink(ctx context.Context, c core.Caller, app string) error
	Prepare(ctx context.Context, c core.Caller, w accounts.Want) (accounts.Consent, error)
	Begin(ctx context.Context, c core.Caller, w accounts.Want, redirectURI string) (accounts.Start, error)
	BeginDevice(ctx context.Context, c core.Caller, w accounts.Want) (accounts.Device, error)
	FinishDevice(ctx context.Context, c core.Caller, login string) (a core.Account, wait time.Duration, err error)
	Finish(ctx context.Context, caller func(ctx context.Context, workspace string) (core.Caller, error), response accounts.Response) (a core.Account, again accounts.Start, err error)
	Document() (accounts.ClientDocument, error)
}

// Access limits browser logins.
type Access interface {
	AllowBrowserLogin(client string) error
}

// Handlers holds the route handlers and their dependencies.
type Handlers struct {
	Accounts Accounts
	Access   Access
	Authn    *authn.Authenticator
	Guard    *webguard.Policy
	Login    func() bool // whether browsers can log in with an identity provider
	BaseURL  string      // the public address; "" derives it from the request
	Log      hclog.Logger
}

// account is an account as clients see it, without its secrets.
type account struct {
	ID        string            `json:"id"`
	App       string            `json:"app"`
	Name      string            `json:"name"`
	Owner     *string           `json:"owner"` // a user ID; null for a shared account
	Issuer    string            `json:"issuer"`
	State     core.AccountState `json:"state"`
	Scopes    []string          `json:"scopes"`
	Default   bool              `json:"default"`
	LinkedAt  string            `json:"linkedAt"`
	ExpiresAt *string           `json:"expiresAt"`
}

func accountOf(a core.Account) account {
	return account{
		ID: a.ID, App: a.App, Name: a.Name, Owner: httpio.OrNull(a.Owner), Issuer: a.Issuer, State: a.State, Scopes: httpio.OrEmpty(a.Scopes),
		Default: a.Default, LinkedAt: core.Timestamp(a.LinkedAt), ExpiresAt: httpio.TimeOrNull(a.ExpiresAt),
	}
}

// List handles GET /v1/accounts.
func (h *Handlers) List(c *fiber.Ctx, caller core.Caller) (any, error) {
	all, err := h.Accounts.List(c.UserContext(), caller)
	shown := []account{}
	app := c.Query("app")
	for _, a := range all {
		if app == "" || a.App == app {
			shown = append(shown, accountOf(a))
		}
	}
	return fiber.Map{"accounts": shown}, err
}

// NewAccount is the request body of Link.
type NewAccount struct {
	App    string   `json:"app"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	Device bool     `json:"device"` // link with a code that is entered on another device
	Agreed string   `json:"agreed"` // with Device: consent.digest of an earlier response
}

type linkResponse struct {
	App     string   `json:"app"`
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Consent *consent `json:"consent,omitempty"`
	Device  *device  `json:"device,omitempty"`
}

// consent describes what a person agrees to before logging in with a code.
type consent struct {
	Address  string   `json:"address"`
	Issuer   string   `json:"issuer"`
	Scopes   []string `json:"scopes"`
	Shared   bool     `json:"shared"`
	Replaces bool     `json:"replaces"`
	Digest   string   `json:"digest"`
}

// device is a login in which the person enters a code on another device.
type device struct {
	Login       string `json:"login"`
	URL         string `json:"url"`
	CompleteURL string `json:"completeUrl,omitempty"`
	Code        string `json:"code"`
	Interval    int    `json:"interval"`
	ExpiresAt   string `json:"expiresAt"`
}

// Link handles POST /v1/accounts. It returns the address of the page on which the caller links an account. If device is
// set and the authorization server supports device codes, it also returns what the caller has to agree to or, once the
// caller has agreed, the code.
func (h *Handlers) Link(c *fiber.Ctx, caller core.Caller, r NewAccount) (any, error) {
	if r.App == "" {
		return nil, core.Errorf(core.CodeBadRequest, "app is missing; set it to the short name of the app that the account is for")
	}
	if r.Name == "" {
		r.Name = accounts.DefaultName
	}
	if err := accounts.CheckName(r.Name); err != nil {
		return nil, err
	}
	for _, scope := range r.Scopes {
		if !core.ValidScope(scope) {
			return nil, core.Errorf(core.CodeBadRequest, "scopes: %.100q is not an OAuth scope", scope)
		}
	}
	if err := h.Accounts.MayLink(c.UserContext(), caller, r.App); err != nil {
		return nil, err
	}
	response := linkResponse{App: r.App, Name: r.Name, URL: h.Accounts.LinkURL(caller, r.App, r.Name, r.Scopes)}
	want := accounts.Want{App: r.App, Name: r.Name, Scopes: r.Scopes, Agreed: r.Agreed}
	switch {
	case !r.Device:
	case r.Agreed == "":
		ask, err := h.Accounts.Prepare(c.UserContext(), caller, want)
		if err != nil {
			return nil, err
		}
		if ask.Device {
			response.Consent = &consent{ask.Address, ask.Issuer, httpio.OrEmpty(ask.Scopes), ask.Shared, ask.Replaces, ask.Digest()}
		}
	default:
		if err := h.Access.AllowBrowserLogin(h.Guard.ClientAddress(c.Context())); err != nil {
			return nil, err
		}
		d, err := h.Accounts.BeginDevice(c.UserContext(), caller, want)
		if err != nil {
			return nil, err
		}
		response.Device = &device{d.Login, d.URL, d.Complete, d.Code, seconds(d.Interval), core.Timestamp(d.Expires)}
	}
	return response, nil
}

// seconds returns a duration in seconds, rounded up.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// DeviceLogin is the request body of Device.
type DeviceLogin struct {
	Login string `json:"login"`
}

// Device handles POST /v1/accounts/device. It completes a login with a code if the person has entered the code.
func (h *Handlers) Device(c *fiber.Ctx, caller core.Caller, r DeviceLogin) (any, error) {
	a, wait, err := h.Accounts.FinishDevice(c.UserContext(), caller, r.Login)
	if err != nil || wait > 0 {
		return fiber.Map{"interval": seconds(wait)}, err
	}
	return fiber.Map{"account": accountOf(a)}, nil
}

// Patch is the request body of Change.
type Patch struct {
	Name    *string `json:"name"`
	Default *bool   `json:"default"`
}

// Change handles PATCH /v1/accounts/:id.
func (h *Handlers) Change(c *fiber.Ctx, caller core.Caller, r Patch) (any, error) {
	if r.Default != nil && !*r.Default {
		return nil, core.Errorf(core.CodeBadRequest, "default can only be set, not removed; make another account the default")
	}
	a, err := h.Accounts.Change(c.UserContext(), caller, c.Params("id"), core.AccountChange{Name: r.Name, Default: r.Default != nil})
	return accountOf(a), err
}

// Unlink handles DELETE /v1/accounts/:id.
func (h *Handlers) Unlink(c *fiber.Ctx, caller core.Caller) (any, error) {
	id := c.Params("id")
	return httpio.Deleted{ID: id, Deleted: true}, h.Accounts.Unlink(c.UserContext(), caller, id)
}

// Client handles GET /v1/accounts/client: this server's description of itself as an OAuth client.
func (h *Handlers) Client(c *fiber.Ctx, _ core.Caller) (any, error) {
	document, err := h.Accounts.Document()
	if err == nil {
		c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
	}
	return document, err
}
