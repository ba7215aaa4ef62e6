package core

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Account is an account that a person has at a remote app, with which the app is called.
type Account struct {
	ID        string // acc_ and 26 letters and digits; never used again
	Workspace string
	Owner     string // User.ID; "" for one that everybody in the workspace uses
	App       string
	Name      string // [a-z0-9-]+, unique for its owner and app
	Issuer    string // the authorization server that granted it
	State     AccountState
	Scopes    []string
	Default   bool // whether calls that name no account use it
	LinkedAt  time.Time
	ExpiresAt time.Time // of the access token; zero when that is not known
	Grant     Grant
}

// AccountState is the state of an Account.
type AccountState string

// The states.
const (
	AccountActive      AccountState = "active"
	AccountLoginNeeded AccountState = "login_needed" // the authorization server does not renew its token any more
)

// Grant is what an authorization server gave for an account, and what renews and revokes it.
type Grant struct {
	Client       OAuthClient
	AccessToken  Secret
	RefreshToken Secret // "" when there is none
	TokenURL     string
	RevokeURL    string // "" when the server revokes nothing (RFC 7009)
	Resource     string // RFC 8707
	Private      bool   // the server may be at a private address, as the app is
	RenewedAt    time.Time
}

// OAuthClient is this server as an authorization server knows it.
type OAuthClient struct {
	ID        string
	Secret    Secret // "" for a public client
	Method    string // how the secret is sent: client_secret_basic or client_secret_post; "" or none for a public client
	ExpiresAt time.Time
}

// AccountChange is what is changed of an account; nil and false leave it as it is.
type AccountChange struct {
	Name    *string
	Default bool // makes it the default of its owner at its app
}

// ClientRegistration is what an OAuthClient was registered for.
type ClientRegistration struct{ Workspace, App, Issuer, RedirectURI string }

// AccountRevocation are the tokens of an account that was unlinked, which are to be revoked.
type AccountRevocation struct {
	Account    string
	Grant      Grant
	Attempts   int
	UnlinkedAt time.Time
}

// AccountWanted is what a call says about the account that it uses.
type AccountWanted struct {
	Name     string // the name of the account; "" for the one of the conversation, or the default
	ReadOnly bool   // the call changes nothing

	// Chosen returns the id of the account that the person has chosen for the conversation, "" for none. It is asked only
	// where the person has several; nil for a call outside of a conversation.
	Chosen func(context.Context) (string, error)
}

// SeveralAccounts is why a call must name its account: details of an error with CodeBadRequest.
type SeveralAccounts struct {
	App   string   `json:"app"`
	Names []string `json:"accounts"`
}

// AccountNeeded is why a call waits for a person: details of an error with CodeLoginNeeded.
type AccountNeeded struct {
	App    string   `json:"app"`
	Name   string   `json:"account"`          // of the account to link
	Scopes []string `json:"scopes,omitempty"` // that its login lacks
	URL    string   `json:"url"`              // where its person links it
}

// AppLists are the lists of an app as one account got them, raw, and what its handshake said.
type AppLists struct {
	Version      string                     `json:"version"`
	Instructions string                     `json:"instructions,omitempty"`
	Stateless    bool                       `json:"stateless,omitempty"`
	Lists        map[Kind][]json.RawMessage `json:"lists"`
}

// The types of RemoteAuth with which an app is called with linked accounts.
const (
	AuthUser   = "user"   // each person's own
	AuthShared = "shared" // one that an admin linked for everybody in the workspace
)

// ValidScope reports whether a text is one OAuth scope (RFC 6749, 3.3).
func ValidScope(scope string) bool {
	return scope != "" && len(scope) <= 256 && !strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// UsesAccounts reports whether the app is called with linked accounts.
func (a RemoteAuth) UsesAccounts() bool { return a.Type == AuthUser || a.Type == AuthShared }
