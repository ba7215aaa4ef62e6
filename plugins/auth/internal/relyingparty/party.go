package relyingparty

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/hashicorp/go-hclog"
	"github.com/lestrrat-go/jwx/v2/jwa"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Options configure a Party: the provider that it trusts, and its own identity as a client. The adapter must have
// validated them.
type Options struct {
	Issuer  string
	JWKSURI string // "" to use discovery
	Keys    string // the URL of the key set if discovery does not find it; "" for none
	Private bool   // the provider may be in a private network

	ClientID     string
	ClientSecret string // "" for a public client
	RedirectURI  string
	Scopes       []string

	Algorithms []string // accepted signature algorithms; nil for RS256 only

	Organization      string // the only organization to admit; "" for any
	OrganizationClaim string
	RoleClaim         string            // "" to ignore roles
	Roles             map[string]string // the provider's role -> owner, admin or member; nil if the names are the same
	GroupsClaim       string            // "" to ignore groups

	AssumeEmailVerified bool // an email address without the email_verified claim counts as verified

	Introspect bool // ask the provider about each verified token

	Log hclog.Logger
}

// Party trusts one issuer. It is safe for concurrent use.
type Party struct {
	options  Options
	client   *http.Client
	document cache[document]
	keys     keys
	end      context.CancelFunc
}

// New returns a Party. It does not contact the provider.
func New(o Options) *Party {
	if o.Algorithms == nil {
		o.Algorithms = []string{jwa.RS256.String()}
	}
	life, end := context.WithCancel(context.Background())
	p := &Party{options: o, end: end, client: NewClient(Reach{Loopback: OnLoopback(o.Issuer), Private: o.Private})}
	p.document = cache[document]{what: "metadata", fresh: documentFresh, keep: documentKeep, life: life, log: o.Log,
		fetch: func(ctx context.Context) (document, error) {
			return discover(ctx, p.client, o.Issuer, o.JWKSURI == "" && o.Keys == "")
		}}
	p.keys.set = cache[keySet]{what: "keys", fresh: keysFresh, keep: keysKeep, life: life, log: o.Log, fetch: p.fetchKeys}
	return p
}

// Close cancels pending requests and closes idle connections.
func (p *Party) Close() {
	p.end()
	p.client.CloseIdleConnections()
}

func (p *Party) fetchKeys(ctx context.Context) (keySet, error) {
	address := p.options.JWKSURI
	if address == "" {
		doc, err := p.document.get(ctx)
		if err != nil && p.options.Keys == "" {
			return nil, err
		}
		address = cmp.Or(doc.JWKSURI, p.options.Keys)
	}
	body, err := Fetch(ctx, p.client, address, "", keysLimit)
	if err != nil {
		return nil, err
	}
	return parseKeys(body, p.options.Algorithms)
}

// Metadata returns the provider's document unchanged.
func (p *Party) Metadata(ctx context.Context) (json.RawMessage, error) {
	doc, err := p.document.get(ctx)
	if err != nil {
		return nil, err
	}
	return doc.raw, nil
}

// Verify verifies a token and returns its owner.
func (p *Party) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	claims, err := p.Check(ctx, req.Token, req.Audiences)
	if err != nil {
		return auth.Identity{}, err
	}
	id, err := p.identity(claims)
	if err == nil && p.options.Introspect {
		err = p.introspect(ctx, req.Token, claims)
	}
	if err != nil {
		return auth.Identity{}, err
	}
	return id, nil
}
