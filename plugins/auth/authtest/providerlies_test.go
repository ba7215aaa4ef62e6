package authtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// providerLies are wrong about providers that are away, slow or changed; loginLies, about logins.
func providerLies() []lie {
	const start, end = "an adapter that starts while its provider ", " answers unavailable"
	// reads answers itself where the honest adapter does not use an answer of the provider.
	reads := func(reason string) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter {
			return verdict{h, func(_ honest, req auth.VerifyRequest, id auth.Identity, err error) (auth.Identity, error) {
				if errors.Is(err, plugins.ErrUnavailable) && strings.Contains(err.Error(), reason) {
					return peek(req.Token)
				}
				return id, err
			}}
		}
	}
	const late, lateLogin, values = "metadata returns when its time is over", "the end of a login returns when its time is over", "metadata is the provider's document, value for value"
	return []lie{
		{"takes documents about an issuer with a slash more", start + "writes documents about an issuer with a slash more" + end, reads("is about the issuer")},
		{"reads documents of any size", start + "writes documents of 3 MiB" + end, reads("is larger than")},
		{"reads key sets of any size", start + "writes a key set of 3 MiB" + end, reads("is larger than")},
		{"follows redirects of documents to other hosts", start + "redirects to another host for its metadata" + end, reads("redirect")},
		{"keeps a connection for each verification that was given up", "a provider that comes back is asked again", func(h honest) auth.Adapter { return &leaksSlots{honest: h, slots: make(chan struct{}, 4)} }},
		{"waits for the metadata beyond the deadline", late, func(h honest) auth.Adapter { return takesItsTimeElsewhere{h, "metadata"} }},
		{"refuses a login when its time is over", lateLogin, func(h honest) auth.Adapter { return refusesLate{h} }},
		{"waits for the end of a login beyond the deadline", lateLogin, func(h honest) auth.Adapter { return takesItsTimeElsewhere{h, "exchange"} }},
		{"has no metadata when its time is over", late, func(h honest) auth.Adapter { return hasNone{h} }},
		{"rounds the numbers of metadata", values, relaysAs(func(doc map[string]any) { doc["x_number"] = 12345678901234567890.0 })},
		{"leaves out what is null", values, relaysAs(func(doc map[string]any) { delete(doc, "x_null") })},
		{"leaves out what is nested", values, relaysAs(func(doc map[string]any) { doc["x_nested"] = map[string]any{} })},
		{"adds a member to metadata", values, relaysAs(func(doc map[string]any) { doc["registration_endpoint"] = "https://adapter.example/register" })},
		{"names its own token endpoint in metadata", values, relaysAs(func(doc map[string]any) { doc["token_endpoint"] = "https://adapter.example/token" })},
	}
}

type leaksSlots struct {
	honest
	slots chan struct{}
}

func (a *leaksSlots) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return auth.Identity{}, plugins.Unavailable(ctx.Err())
	}
	id, err := a.honest.Verify(ctx, req)
	if ctx.Err() == nil {
		<-a.slots
	}
	return id, err
}

type takesItsTimeElsewhere struct {
	honest
	method string
}

// wait asks the provider and waits for it whatever the deadline of the call is.
func (a takesItsTimeElsewhere) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = ask(ctx, a.provider.Issuer()+"/oauth2/userinfo")
}

func (a takesItsTimeElsewhere) Metadata(ctx context.Context) (json.RawMessage, error) {
	if a.method == "metadata" {
		a.wait(ctx)
	}
	return a.honest.Metadata(ctx)
}

func (a takesItsTimeElsewhere) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if a.method == "exchange" {
		a.wait(ctx)
	}
	return a.honest.Exchange(ctx, req)
}

// refusesLate takes a deadline for a refusal.
type refusesLate struct{ honest }

func (a refusesLate) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	if ctx.Err() != nil {
		err = plugins.ErrUnauthenticated
	}
	return id, err
}

// relaysAs changes metadata; everything that it does not change stays as it is.
func relaysAs(change func(map[string]any)) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return relaysChanged{h, change} }
}

type relaysChanged struct {
	honest
	change func(map[string]any)
}

func (a relaysChanged) Metadata(ctx context.Context) (json.RawMessage, error) {
	raw, err := a.honest.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	doc := map[string]any{}
	if err := decoder.Decode(&doc); err != nil {
		return nil, err
	}
	a.change(doc)
	return json.Marshal(doc)
}

func loginLies() []lie {
	const tokens, nonces, person, atOnce, state = "no id token ends a login that Verify would refuse as a token", "an id token without the nonce of the login is refused", "a login is the person's of the id token, whoever the access token is about",
		"logins at once end each with its own verifier and nonce", "the state comes back whatever characters it has, to where the request says"
	var list []lie
	for what, reason := range map[string]string{
		"takes id tokens of any issuer": "of the issuer", "takes id tokens without an expiry": "no expiry", "takes id tokens that are not valid yet": "not valid yet",
		"takes id tokens without a subject": "no subject", "takes id tokens for any audience": "another audience", "takes id tokens signed with anything": "algorithm is",
		"takes id tokens of keys that nobody has": "no key", "takes id tokens with critical headers": "critical headers",
	} {
		list = append(list, lie{what, tokens, takesLogins(reason)})
	}
	return append(list,
		lie{"does without a nonce", nonces, takesLogins("nonce")},
		lie{"is the person of the access token", person, func(h honest) auth.Adapter { return believesAccessToken{h} }},
		lie{"keeps one nonce at a time", atOnce, func(h honest) auth.Adapter { return &keepsOneNonce{honest: h} }},
		lie{"does one login at a time", atOnce, func(h honest) auth.Adapter { return &oneLoginAtATime{honest: h} }},
		lie{"takes the nonce of any login", atOnce, func(h honest) auth.Adapter { return logsIn{h, "nonce"} }},
		lie{"writes the state as it is", state, urls(func(q url.Values, address *url.URL) {
			plain := q.Get("state")
			q.Del("state")
			address.RawQuery = q.Encode() + "&state=" + strings.ReplaceAll(plain, " ", "+")
		})},
		lie{"cuts the state at 512 bytes", state, urls(func(q url.Values, address *url.URL) {
			q.Set("state", q.Get("state")[:min(512, len(q.Get("state")))])
			address.RawQuery = q.Encode()
		})},
		lie{"comes back to where its settings say", state, urls(func(q url.Values, address *url.URL) {
			q.Set("redirect_uri", authtest.RedirectURI)
			address.RawQuery = q.Encode()
		})},
		lie{"sends the code to wherever the provider redirects", "code and verifier follow no redirect to another host", func(h honest) auth.Adapter { return strays{h} }},
	)
}

type believesAccessToken struct{ honest }

func (a believesAccessToken) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.honest.Exchange(ctx, req)
	id.Subject = "user_mallory" // as the access token of that login says
	return id, err
}

// keepsOneNonce checks logins by the nonce of the one that began last.
type keepsOneNonce struct {
	honest
	nonce atomic.Value
}

func (a *keepsOneNonce) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	a.nonce.Store(req.Nonce)
	return a.honest.AuthorizeURL(ctx, req)
}

func (a *keepsOneNonce) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	req.Nonce, _ = a.nonce.Load().(string)
	return a.honest.Exchange(ctx, req)
}

// oneLoginAtATime gives up a login when another one begins.
type oneLoginAtATime struct {
	honest
	begun, ended atomic.Int64
}

func (a *oneLoginAtATime) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	a.begun.Add(1)
	return a.honest.AuthorizeURL(ctx, req)
}

func (a *oneLoginAtATime) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if a.begun.Load() > a.ended.Add(1) {
		return auth.Identity{}, plugins.ErrUnauthenticated
	}
	return a.honest.Exchange(ctx, req)
}

// urls changes the addresses of logins.
func urls(change func(url.Values, *url.URL)) func(honest) auth.Adapter {
	return func(h honest) auth.Adapter { return urlChanger{h, change} }
}

type urlChanger struct {
	honest
	change func(url.Values, *url.URL)
}

func (a urlChanger) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	text, err := a.honest.AuthorizeURL(ctx, req)
	if err != nil {
		return "", err
	}
	address, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	a.change(maps.Clone(address.Query()), address)
	return address.String(), nil
}

// strays sends codes with a client that follows every redirect.
type strays struct{ honest }

func (a strays) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {req.Code}, "code_verifier": {req.CodeVerifier}, "redirect_uri": {req.RedirectURI}, "client_id": {authtest.ClientID}}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, a.provider.Issuer()+"/oauth2/token", strings.NewReader(form.Encode()))
	if err != nil {
		return auth.Identity{}, err
	}
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(ask)
	if err != nil {
		return auth.Identity{}, plugins.Unavailable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return auth.Identity{}, plugins.ErrUnavailable
}
