package core

import (
	"context"
	"encoding/json"
	"net/textproto"
	"strings"
	"time"
)

// Account is a person's account for a remote app. Calls to the app use it.
type Account struct {
	ID        string // acc_ and 26 letters and digits; never reused
	Workspace string
	Owner     string // User.ID; "" if everybody in the workspace uses it
	App       string
	Name      string // [a-z0-9-]+, unique per owner and app
	Issuer    string // the authorization server that issued the grant
	State     AccountState
	Scopes    []string
	Default   bool // whether calls that do not name an account use it
	Exchanged bool // it lasts only as long as the owner's token that was exchanged for it (AuthExchange)
	LinkedAt  time.Time
	ExpiresAt time.Time // when the access token expires; zero if unknown
	Grant     Grant
}

// SharesGrant reports whether revoking b's tokens may invalidate a's too: some authorization servers keep a single grant
// for a person and a client.
func (a Account) SharesGrant(b Account) bool {
	return a.Issuer == b.Issuer && a.Grant.Client.ID == b.Grant.Client.ID
}

// AccountState is the state of an Account.
type AccountState string

// The states.
const (
	AccountActive      AccountState = "active"
	AccountLoginNeeded AccountState = "login_needed" // the authorization server no longer renews its token
)

// MaxAccounts is how many accounts one person, or everybody together in the case of shared ones, can link for an app.
const MaxAccounts = 20

// TooManyAccounts returns the error for an account beyond MaxAccounts.
func TooManyAccounts(app string) error {
	return Errorf(CodeLimitReached, "%d accounts for app %s are linked, which is the limit; unlink one first", MaxAccounts, app)
}

// Grant contains the tokens that an authorization server issued for an account, and what is needed to renew and revoke them.
type Grant struct {
	Client       OAuthClient
	AccessToken  Secret
	RefreshToken Secret // "" if there is none
	ProofKey     Secret // the private key that the tokens are bound to (DPoP, RFC 9449); "" for bearer tokens
	TokenURL     string
	RevokeURL    string // "" if the server has no revocation endpoint (RFC 7009)
	Resource     string // RFC 8707
	Private      bool   // the server may be at a private address because the app is
	RenewedAt    time.Time
}

// OAuthClient is this server's registration as a client of an authorization server.
type OAuthClient struct {
	ID        string
	Secret    Secret // "" for a public client
	Method    string // how the secret is sent: client_secret_basic or client_secret_post; "" or none for a public client
	ExpiresAt time.Time
}

// AccountChange is a change to an account; nil and false leave it unchanged.
type AccountChange struct {
	Name    *string
	Default bool // make it the owner's default for the app
}

// ClientRegistration identifies the purpose for which an OAuthClient was registered.
type ClientRegistration struct{ Workspace, App, Issuer, RedirectURI string }

// AccountRevocation contains the tokens of an unlinked account that still have to be revoked.
type AccountRevocation struct {
	Account    string
	Grant      Grant
	Attempts   int
	UnlinkedAt time.Time
}

// AccountWanted describes which account a call wants to use.
type AccountWanted struct {
	Name     string // the name of the account; "" means the conversation's account, or the default
	ReadOnly bool   // the call does not change anything
	Tool     string // the app's own name of the tool, which the account must list

	// Chosen is consulted only if the person has several accounts. It is nil for a call outside a conversation.
	Chosen ChosenAccounts
}

// ChosenAccounts returns which of several accounts a person has chosen for an app in one conversation.
type ChosenAccounts interface {
	// ChosenAccount returns the id of the chosen account, or "" if none was chosen.
	ChosenAccount(ctx context.Context, app string) (string, error)
}

// SeveralAccounts lists the accounts that a call has to choose from. It is the details of an error with CodeBadRequest.
type SeveralAccounts struct {
	App   string   `json:"app"`
	Names []string `json:"accounts"`
}

// AccountNeeded describes what a person must do before a call can proceed. It is the details of an error with CodeLoginNeeded.
type AccountNeeded struct {
	App    string   `json:"app"`
	Name   string   `json:"account"`          // the account to link
	Scopes []string `json:"scopes,omitempty"` // scopes that the account's login lacks
	URL    string   `json:"url"`              // where the person links it
}

// AppLists contains the raw lists that an app returned to one account, and the facts from its handshake.
type AppLists struct {
	Version      string                     `json:"version"`
	Instructions string                     `json:"instructions,omitempty"`
	Stateless    bool                       `json:"stateless,omitempty"`
	Lists        map[Kind][]json.RawMessage `json:"lists"`
}

// The values of RemoteAuth.Type for apps that are called with accounts.
const (
	AuthUser   = "user"   // each person uses their own
	AuthShared = "shared" // everybody in the workspace uses one that an admin linked

	// AuthExchange stands for accounts that nobody links: the identity provider's token in a call is exchanged for the
	// app's (RFC 8693).
	AuthExchange = "exchange"
)

// ValidScope reports whether scope is a single OAuth scope (RFC 6749 section 3.3).
func ValidScope(scope string) bool {
	return scope != "" && len(scope) <= 256 && !strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// LinksAccounts reports whether the app is called with accounts that people link (AuthUser or AuthShared).
func (a RemoteAuth) LinksAccounts() bool { return a.Type == AuthUser || a.Type == AuthShared }

// UsesAccounts reports whether the app is called with accounts, linked or not (AuthExchange).
func (a RemoteAuth) UsesAccounts() bool { return a.LinksAccounts() || a.Type == AuthExchange }

// Replaces reports whether a configured header would replace the account that a call uses. The header has its own
// credentials, which all calls would share.
func (a RemoteAuth) Replaces(header string) bool {
	switch textproto.CanonicalMIMEHeaderKey(header) {
	case "Authorization", "Cookie", "Dpop":
		return a.UsesAccounts()
	}
	return false
}
