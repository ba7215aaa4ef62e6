package login

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// Access logs users in and out. Its errors are core.Errors.
type Access interface {
	CountWrongKey(client, peer string) error
	Login(ctx context.Context, key string) (token string, err error)
	Logout(ctx context.Context, token string) error
	LoginProviders(ctx context.Context) ([]string, error)
	AllowBrowserLogin(client string) error
	BeginLogin(ctx context.Context, r access.LoginRequest) (access.LoginStart, error)
	FinishLogin(ctx context.Context, answer access.LoginAnswer) (access.Finished, error)
	AskForLogin(ctx context.Context, d access.Device) (access.Device, error)
	AnswerDevice(ctx context.Context, consent string, allow bool) (done access.Finished, continueAt string, err error)
	BackchannelLogout(ctx context.Context, token string) error
}

// Handlers holds the route handlers and their dependencies.
type Handlers struct {
	Access      Access
	Guard       *webguard.Policy
	Log         hclog.Logger
	RedirectURI string // where an identity provider sends the browser; "" derives it from the request
}
