package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// pendingLife is how long a person may take to log in to an authorization server.
const pendingLife = 10 * time.Minute

// Want is an account that a person is about to link.
type Want struct {
	App    string
	Name   string   // "" for DefaultName
	Scopes []string // in addition to those that the app asks for
	Agreed string   // for Begin: the Digest of the Consent that the person has seen
}

// Consent describes what a person agrees to before the browser is sent to the authorization server.
type Consent struct {
	App       string
	Address   string // the app's address, without parts that may be secret
	Issuer    string
	Authorize string // the address that the browser goes to
	Name      string
	Scopes    []string
	Shared    bool // everybody in the workspace will use the account
	Replaces  bool // an account of this name is already linked
	Device    bool // the authorization server can also give a code (BeginDevice)
}

// Digest identifies the whole content of a Consent. Without it, an app could show one thing on the page and ask for
// another when the person agrees.
func (c Consent) Digest() string {
	c.Scopes = slices.Sorted(slices.Values(c.Scopes))
	return hashOf(fmt.Sprintf("%#v", c))
}

// pending is a login in progress with an authorization server. It is stored encrypted, under the hash of its state.
type pending struct {
	Workspace, By, Owner, App, AppID, Name string
	Issuer, Resource                       string
	Authorize, Token, Revoke               string // endpoints
	ProofKey                               string
	StatesIss, Private                     bool
	Client                                 core.OAuthClient `json:"-"`
	ClientSecret                           string
	ClientID, ClientMethod                 string
	ClientExpires                          time.Time
	Scopes                                 []string
	ScopesOptional                         bool   // neither the operator nor a call asks for them
	Mark                                   string // in the redirect URI
	Revoked                                bool   // the grant that this login replaces has been revoked
	Verifier, RedirectURI                  string
	Binding                                string // the hash of the secret in the browser's cookie
	Device                                 deviceCode
}

// Prepare returns the consent that c is asked for. An error says why c cannot link the account.
func (m *Manager) Prepare(ctx context.Context, c core.Caller, w Want) (Consent, error) {
	_, _, consent, err := m.prepare(ctx, c, w)
	return consent, err
}

func (m *Manager) prepare(ctx context.Context, c core.Caller, w Want) (in core.Installation, s server, consent Consent, err error) {
	w.Name = cmp.Or(w.Name, DefaultName)
	if err := CheckName(w.Name); err != nil {
		return in, s, consent, err
	}
	if in, err = m.o.Store.Installation(ctx, c.Workspace.ID, w.App); err != nil {
		return in, s, consent, err
	}
	owner, err := m.mayLink(c, in)
	if err != nil {
		return in, s, consent, err
	}
	if s, err = m.discover(ctx, *in.Remote); err != nil {
		return in, s, consent, err
	}
	own, err := m.of(ctx, c.Workspace.ID, owner, w.App)
	if err != nil {
		return in, s, consent, err
	}
	scopes := slices.Concat(s.Wanted, w.Scopes)
	before, replaces := pick(own, w.Name)
	if !replaces && len(own) >= core.MaxAccounts {
		return in, s, consent, core.TooManyAccounts(in.Name)
	}
	if replaces && len(w.Scopes) > 0 { // a login for more rights keeps the account's current ones
		scopes = slices.Concat(scopes, before.Scopes)
	}
	consent = Consent{
		App: in.Name, Address: in.PublicName(), Issuer: s.Issuer, Authorize: s.Authorize, Name: w.Name, Scopes: validScopes(scopes),
		Shared: owner == "", Replaces: replaces, Device: s.Device != "" && (s.Register != "" || in.Remote.Auth.ClientID != ""),
	}
	return in, s, consent, nil
}

// mayLink returns the User.ID of the future owner of an account that c links, or "" for a shared account. The error
// says why c may not link it.
func (m *Manager) mayLink(c core.Caller, in core.Installation) (owner string, err error) {
	switch {
	case in.Remote != nil && in.Remote.Auth.Type == core.AuthExchange:
		return "", core.Errorf(core.CodeBadRequest, "app %s exchanges each call's token, so there is no account to link", in.Name)
	case in.Remote == nil || !in.Remote.Auth.LinksAccounts():
		return "", core.Errorf(core.CodeBadRequest, "app %s does not use linked accounts: only remote apps installed with transport.auth.type user or shared do", in.Name)
	case in.Remote.Auth.Type == core.AuthShared && !c.Workspace.Role.Admin():
		return "", core.Errorf(core.CodeForbidden, "app %s uses one account for everybody, which only a workspace admin can link", in.Name)
	case !m.o.Store.Encrypts() && m.o.MakeKey == nil:
		return "", core.Errorf(core.CodeNotConfigured, "account tokens are stored only if they can be encrypted, and this server has no key: run `ropewalk encryption new-key > FILE` with a file outside its home, set storage.keyFile to that file, and restart the server")
	}
	return m.ownerFor(c, in.Remote.Auth)
}

// Start is a login in progress.
type Start struct {
	URL     string // where the browser goes
	Binding string // for a short-lived HttpOnly cookie; pass it to Finish
}

// Begin starts to link an account after c has agreed to it, with the authorization code flow and PKCE. redirectURI is
// CallbackPath at the address where the browser reaches this server. The error is core.CodeConflict if c has agreed to
// something else.
func (m *Manager) Begin(ctx context.Context, c core.Caller, w Want, redirectURI string) (Start, error) {
	in, s, consent, err := m.agreed(ctx, c, w)
	if err != nil {
		return Start{}, err
	}
	mark := markOf(in, s)
	p, err := m.newPending(ctx, c, w, in, s, consent, withMark(redirectURI, mark))
	if err != nil {
		return Start{}, err
	}
	p.Mark = mark
	return m.send(ctx, p)
}

// agreed is prepare for a login that c has agreed to. It creates the key that encrypts its tokens if there is none.
func (m *Manager) agreed(ctx context.Context, c core.Caller, w Want) (in core.Installation, s server, consent Consent, err error) {
	if in, s, consent, err = m.prepare(ctx, c, w); err != nil {
		return in, s, consent, err
	}
	if w.Agreed != consent.Digest() {
		return in, s, consent, core.Errorf(core.CodeConflict, "app %s now asks for something different from what you agreed to. Start again", in.Name)
	}
	return in, s, consent, m.ensureKey()
}

// ensureKey creates the key that encrypts tokens if there is none. If several first logins run at once, only one of
// them creates the key. Otherwise, tokens could be encrypted with a key that is not stored.
func (m *Manager) ensureKey() error {
	m.making.Lock()
	defer m.making.Unlock()
	if m.o.Store.Encrypts() {
		return nil
	}
	return m.o.MakeKey()
}

// newPending returns a login with the client that this server uses for it; redirectURI is "" for a login with a code.
func (m *Manager) newPending(ctx context.Context, c core.Caller, w Want, in core.Installation, s server, consent Consent, redirectURI string) (pending, error) {
	client, err := m.clientFor(ctx, in, s, redirectURI)
	if err != nil {
		return pending{}, err
	}
	owner := c.User.ID
	if consent.Shared {
		owner = ""
	}
	var proofKey core.Secret
	if s.Proofs {
		if proofKey, err = remote.NewProofKey(); err != nil {
			return pending{}, err
		}
	}
	return pending{
		Workspace: c.Workspace.ID, By: c.User.ID, Owner: owner, App: in.Name, AppID: in.ID, Name: consent.Name,
		Issuer: s.Issuer, Resource: s.Resource, Authorize: s.Authorize, Token: s.Token, Revoke: s.Revoke, StatesIss: s.StatesIss, Private: s.Private,
		ProofKey: proofKey.Reveal(), Client: client, ClientID: client.ID, ClientSecret: client.Secret.Reveal(), ClientMethod: client.Method, ClientExpires: client.ExpiresAt,
		Scopes: consent.Scopes, ScopesOptional: in.Remote.Auth.Scopes == "" && len(w.Scopes) == 0, RedirectURI: redirectURI,
	}, nil
}

// grant returns the grant of a login, without tokens.
func (p pending) grant() core.Grant {
	return core.Grant{Client: p.Client, ProofKey: core.Secret(p.ProofKey), TokenURL: p.Token, RevokeURL: p.Revoke, Resource: p.Resource, Private: p.Private}
}

// send stores a login, and returns where the browser goes.
func (m *Manager) send(ctx context.Context, p pending) (Start, error) {
	state, binding, verifier := secret(), secret(), oauth2.GenerateVerifier()
	p.Verifier, p.Binding = verifier, hashOf(binding)
	key, err := remote.ParseProofKey(core.Secret(p.ProofKey))
	if err != nil {
		return Start{}, err
	}
	if err := m.putLogin(ctx, stateKey(state), p, time.Now().Add(pendingLife)); err != nil {
		return Start{}, err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", p.Resource)}
	if key != nil {
		options = append(options, oauth2.SetAuthURLParam("dpop_jkt", key.Thumbprint())) // RFC 9449 section 10
	}
	if slices.Contains(p.Scopes, offline) { // OpenID providers grant it only with consent
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	if p.Issuer == google { // Google has no scope for long-lived tokens, and issues them only with consent
		options = append(options, oauth2.AccessTypeOffline, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	config := oauth2.Config{ClientID: p.ClientID, RedirectURL: p.RedirectURI, Scopes: p.Scopes, Endpoint: oauth2.Endpoint{AuthURL: p.Authorize}}
	return Start{URL: config.AuthCodeURL(state, options...), Binding: binding}, nil
}

func (m *Manager) putLogin(ctx context.Context, key string, p pending, expires time.Time) error {
	record, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return m.o.Store.PutLogin(ctx, key, p.By, record, expires)
}

// takeLogin removes and returns a login in progress, so only one of several concurrent callers gets it.
func (m *Manager) takeLogin(ctx context.Context, key string) (p pending, err error) {
	record, err := m.o.Store.TakeLogin(ctx, key)
	if core.CodeOf(err) == core.CodeNotFound {
		return p, core.Errorf(core.CodeForbidden, "this login is not in progress: it finished, expired, or never started. Start again")
	}
	if err == nil {
		err = json.Unmarshal(record, &p)
	}
	p.Client = core.OAuthClient{ID: p.ClientID, Secret: core.Secret(p.ClientSecret), Method: p.ClientMethod, ExpiresAt: p.ClientExpires}
	return p, err
}

// markOf returns the mark of an authorization server in the redirect URI, or "" for none. A server that does not
// include its issuer in its responses needs one: without it, the response of another server would pass as its response
// (the mix-up of RFC 9700 section 4.4). A client that the operator registered has one redirect URI, without a mark.
func markOf(in core.Installation, s server) string {
	if s.StatesIss || in.Remote.Auth.ClientID != "" {
		return ""
	}
	return hashOf(s.Issuer)[:markLength]
}

// markLength is the length of a mark, which consists of hexadecimal digits.
const markLength = 32

func withMark(address, mark string) string {
	if mark == "" {
		return address
	}
	return address + "?" + MarkParameter + "=" + mark
}

// Response is the authorization server's response, as the browser returned it.
type Response struct {
	State   string
	Code    string
	Issuer  string // the iss parameter (RFC 9207); "" if there was none
	Error   string // why the server did not grant access
	Mark    string // the parameter MarkParameter
	Binding string
}

// Finish completes a login for the person who started it, in the browser where it started. caller returns the person
// with their current rights in a workspace. The error is core.CodeForbidden for a response that does not match the
// login, and for a person who may no longer link the account. If the authorization server reported an error, the
// message includes it. If again.URL is not empty, the browser must go there for another login: the server refused
// optional scopes, so the next login asks for fewer, or the code was revoked together with the grant that the login
// replaces.
func (m *Manager) Finish(ctx context.Context, caller func(ctx context.Context, workspace string) (core.Caller, error), response Response) (a core.Account, again Start, err error) {
	p, err := m.takeLogin(ctx, stateKey(response.State))
	if err != nil {
		return a, again, err
	}
	if subtle.ConstantTimeCompare([]byte(hashOf(response.Binding)), []byte(p.Binding)) != 1 {
		return a, again, core.Errorf(core.CodeForbidden, "this login started in another browser. Start again in this one")
	}
	c, err := caller(ctx, p.Workspace)
	switch {
	case err != nil:
		return a, again, err
	case c.User.ID != p.By:
		return a, again, core.Errorf(core.CodeForbidden, "somebody else started this login")
	case response.Issuer == "" && p.StatesIss, response.Issuer != "" && response.Issuer != p.Issuer, response.Mark != p.Mark: // RFC 9207 section 2.4
		return a, again, core.Errorf(core.CodeForbidden, "the response did not come from %s, where the login started", hostOf(p.Issuer))
	case response.Error == "invalid_scope" && p.ScopesOptional && len(p.Scopes) > 0:
		p.Scopes = fewerScopes(p.Scopes)
		again, err = m.send(ctx, p)
		return a, again, err
	case response.Error != "":
		return a, again, core.Errorf(core.CodeForbidden, "%s did not grant access: %.100q", hostOf(p.Issuer), response.Error)
	case response.Code == "":
		return a, again, core.Errorf(core.CodeForbidden, "%s did not send a code", hostOf(p.Issuer))
	}
	if err := m.mayComplete(ctx, c, p); err != nil {
		return a, again, err
	}
	return m.complete(ctx, p, response.Code)
}

// fewerScopes returns the scopes for the next attempt, after an authorization server refused some: offline_access
// alone, since without it a login may expire soon, and then none.
func fewerScopes(refused []string) []string {
	if len(refused) > 1 && slices.Contains(refused, offline) {
		return []string{offline}
	}
	return nil
}

// revokeReplaced revokes the grant that a login replaces, if its authorization server may have a single grant for the
// person and this client: revoking that grant later would end the new one too. The revocation is tried once.
func (m *Manager) revokeReplaced(ctx context.Context, p pending) bool {
	own, err := m.of(ctx, p.Workspace, p.Owner, p.App)
	before, replaces := pick(own, p.Name)
	if err != nil || !replaces || p.Revoked {
		return false
	}
	if before, err = m.o.Store.Account(ctx, before.ID); err != nil || before.Issuer != p.Issuer || before.Grant.Client.ID != p.Client.ID {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	if err := m.revoke(ctx, before.Grant); err != nil {
		m.log.Warn("could not revoke the tokens of a replaced login; giving up", "account", before.ID, "reason", err)
	}
	return true
}

// mayComplete returns an error if c's role or the app has changed since the login started.
func (m *Manager) mayComplete(ctx context.Context, c core.Caller, p pending) error {
	in, err := m.o.Store.Installation(ctx, p.Workspace, p.App)
	if err != nil || in.ID != p.AppID { // a new app must not get what was granted to its predecessor
		return core.Errorf(core.CodeConflict, "app %s was uninstalled or replaced in the meantime", p.App)
	}
	owner, err := m.mayLink(c, in)
	if err == nil && owner != p.Owner {
		err = core.Errorf(core.CodeConflict, "app %s now uses a different kind of account than when the login started", p.App)
	}
	return err
}

// complete exchanges the code for tokens and stores the account.
func (m *Manager) complete(ctx context.Context, p pending, code string) (a core.Account, again Start, err error) {
	revoked := m.revokeReplaced(ctx, p)
	token, err := m.exchange(ctx, p.grant(), url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {p.Verifier}, "redirect_uri": {p.RedirectURI},
	})
	switch known := codeOf(err); {
	case known == "invalid_grant" && revoked:
		p.Revoked = true
		again, err = m.send(ctx, p)
		return a, again, err
	case known == "not_allowed" && p.ScopesOptional && slices.Contains(p.Scopes, offline): // Keycloak: this person gets no offline tokens
		p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(scope string) bool { return scope == offline })
		again, err = m.send(ctx, p)
		return a, again, err
	case known == "invalid_client":
		_ = m.o.Store.DeleteOAuthClient(ctx, core.ClientRegistration{Workspace: p.Workspace, App: p.App, Issuer: p.Issuer, RedirectURI: p.RedirectURI})
	}
	if err != nil {
		return a, again, core.Errorf(core.CodeUnavailable, "the account was not linked: %s", describe(p.Issuer, err))
	}
	a, err = m.keep(ctx, p, token)
	return a, again, err
}

// keep stores the account of a login with its tokens.
func (m *Manager) keep(ctx context.Context, p pending, token *oauth2.Token) (core.Account, error) {
	a := core.Account{
		Workspace: p.Workspace, Owner: p.Owner, App: p.App, Name: p.Name, Issuer: p.Issuer, State: core.AccountActive, Scopes: p.Scopes, LinkedAt: time.Now(),
		Grant: p.grant(),
	}
	take(&a, token)
	a, err := m.o.Store.LinkAccount(ctx, a)
	if err != nil {
		_ = m.revoke(context.WithoutCancel(ctx), a.Grant) // the tokens would never be used
		return a, err
	}
	m.grants.Remove(a.ID)
	m.apps.AccountLinked(a)
	m.Changed(a.ID) // wakes the calls that wait for the account
	m.log.Info("account linked", "account", a.ID, "app", a.App, "workspace", a.Workspace, "owner", a.Owner, "issuer", a.Issuer)
	m.publish(core.EventAccountLinked, a)
	m.wakeRevoker() // for the grant that this one replaced
	return a, nil
}

// secret returns 260 random bits as text that is safe in a cookie and in a URL.
func secret() string { return rand.Text() + rand.Text() }

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// stateKey returns the key under which a pending login is stored. Logins to this server itself have different keys.
func stateKey(state string) string { return hashOf(strings.Join([]string{"account", state}, "\x00")) }

// MayLink returns an error if c may not link an account for an app.
func (m *Manager) MayLink(ctx context.Context, c core.Caller, app string) error {
	in, err := m.o.Store.Installation(ctx, c.Workspace.ID, app)
	if err == nil {
		_, err = m.mayLink(c, in)
	}
	return err
}
