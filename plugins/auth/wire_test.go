package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is an adapter that returns fixed results and records the requests.
type says struct {
	id       auth.Identity
	metadata string
	err      error
	asked    *[]any
}

func (s says) Describe(context.Context) (auth.Description, error) {
	return auth.Description{Issuer: "i", AuthorizationServers: []string{"a", "b"}, Audiences: []string{"c"}, Login: true}, s.err
}

func (s says) Verify(_ context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	*s.asked = append(*s.asked, req)
	return s.id, s.err
}

func (s says) Metadata(context.Context) (json.RawMessage, error) {
	return json.RawMessage(s.metadata), s.err
}

// saysMore also has the Login capability.
type saysMore struct{ says }

func (s saysMore) AuthorizeURL(_ context.Context, req auth.AuthorizeRequest) (string, error) {
	*s.asked = append(*s.asked, req)
	return "https://id.example.com/authorize", s.err
}

func (s saysMore) Exchange(_ context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	*s.asked = append(*s.asked, req)
	return s.id, s.err
}

func full() auth.Identity {
	return auth.Identity{
		Issuer: "i", Subject: "s", Email: "e", DisplayName: "d", OrganizationID: "o", OrgRole: "admin",
		Scopes: []string{"x", "y"}, ExpiresAt: time.Unix(1_900_000_000, 5_000_000).UTC(),
	}
}

func TestEveryFieldCrossesTheWire(t *testing.T) {
	var asked []any
	adapter := saysMore{says{id: full(), metadata: `{"issuer": "i", "more": [1]}`, asked: &asked}}
	client := auth.Client(plugintest.Serve(t, auth.Plugin(adapter)))
	want := []any{
		auth.VerifyRequest{Token: "t", Audiences: []string{"a", "b"}},
		auth.AuthorizeRequest{RedirectURI: "r", State: "s", Nonce: "n", CodeChallenge: "c"},
		auth.ExchangeRequest{RedirectURI: "r", Code: "c", Nonce: "n", CodeVerifier: "v"},
	}
	if id, err := client.Verify(t.Context(), want[0].(auth.VerifyRequest)); err != nil || !reflect.DeepEqual(id, full()) {
		t.Errorf("Verify: got %+v, %v", id, err)
	}
	if url, err := client.(auth.Login).AuthorizeURL(t.Context(), want[1].(auth.AuthorizeRequest)); err != nil || url != "https://id.example.com/authorize" {
		t.Errorf("AuthorizeURL: got %q, %v", url, err)
	}
	if id, err := client.(auth.Login).Exchange(t.Context(), want[2].(auth.ExchangeRequest)); err != nil || !reflect.DeepEqual(id, full()) {
		t.Errorf("Exchange: got %+v, %v", id, err)
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("the adapter received %+v, want %+v", asked, want)
	}
	wantDescription, _ := adapter.Describe(t.Context())
	if d, err := client.Describe(t.Context()); err != nil || !reflect.DeepEqual(d, wantDescription) {
		t.Errorf("Describe: got %+v, %v", d, err)
	}
	if document, err := client.Metadata(t.Context()); err != nil || string(document) != adapter.metadata {
		t.Errorf("Metadata: got %s, %v", document, err)
	}
}

func TestErrorsCrossTheWire(t *testing.T) {
	for _, want := range []error{plugins.ErrUnauthenticated, plugins.ErrUnavailable, plugins.ErrNotFound} {
		adapter := saysMore{says{err: fmt.Errorf("%w: the reason", want), asked: new([]any)}}
		client := auth.Client(plugintest.Serve(t, auth.Plugin(adapter)))
		_, described := client.Describe(t.Context())
		_, verified := client.Verify(t.Context(), auth.VerifyRequest{})
		_, relayed := client.Metadata(t.Context())
		_, started := client.(auth.Login).AuthorizeURL(t.Context(), auth.AuthorizeRequest{})
		_, ended := client.(auth.Login).Exchange(t.Context(), auth.ExchangeRequest{})
		for i, err := range []error{described, verified, relayed, started, ended} {
			if !errors.Is(err, want) || err.Error() != adapter.err.Error() {
				t.Errorf("method %d: got %v, want %v", i, err, adapter.err)
			}
		}
	}
}

func TestAnIncompleteResponseIsNotAnAcceptance(t *testing.T) {
	for name, spoil := range map[string]func(*auth.Identity){
		"no issuer":  func(id *auth.Identity) { id.Issuer = "" },
		"no subject": func(id *auth.Identity) { id.Subject = "" },
		"no expiry":  func(id *auth.Identity) { id.ExpiresAt = time.Time{} },
	} {
		id := full()
		spoil(&id)
		client := auth.Client(plugintest.Serve(t, auth.Plugin(says{id: id, metadata: "<html>", asked: new([]any)})))
		if got, err := client.Verify(t.Context(), auth.VerifyRequest{Token: "t"}); err == nil || !reflect.DeepEqual(got, auth.Identity{}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if document, err := client.Metadata(t.Context()); err == nil {
			t.Errorf("metadata that is not JSON: got %s", document)
		}
	}
}

func TestTextThatIsNotUTF8IsABadToken(t *testing.T) {
	var asked []any
	client := auth.Client(plugintest.Serve(t, auth.Plugin(saysMore{says{id: full(), asked: &asked}})))
	if _, err := client.Verify(t.Context(), auth.VerifyRequest{Token: "\xff"}); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("a token: got %v, want a refusal", err)
	}
	if _, err := client.(auth.Login).Exchange(t.Context(), auth.ExchangeRequest{Code: "\xff"}); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("a code: got %v, want a refusal", err)
	}
	if len(asked) > 0 {
		t.Errorf("the adapter received %v", asked)
	}
}

func TestAnAdapterWithLoginMethodsHasTheLoginCapability(t *testing.T) {
	without, with := auth.Plugin(says{}), auth.Plugin(saysMore{})
	if len(without.Info().Capabilities) != 0 || !reflect.DeepEqual(with.Info().Capabilities, []string{plugins.CapabilityLogin}) {
		t.Errorf("got %q and %q", without.Info().Capabilities, with.Info().Capabilities)
	}
	client := auth.Client(plugintest.Serve(t, auth.Plugin(says{asked: new([]any)})))
	if _, err := client.(auth.Login).AuthorizeURL(t.Context(), auth.AuthorizeRequest{}); !errors.Is(err, plugins.ErrUnimplemented) {
		t.Errorf("got %v, want unimplemented", err)
	}
}
