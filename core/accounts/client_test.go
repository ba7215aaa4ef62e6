package accounts

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func query(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// A server that does not send its issuer gets its own redirect URI. It does not get the metadata document: every
// authorization server would accept it, and send the code to whoever owns the redirect URI.
func TestAServerThatSendsNoIssuerGetsItsOwnRedirectURI(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	r.o.BaseURL = "https://tools.example.com"
	p.change(func(p *provider) {
		silent(p, nil)
		p.metadata["client_id_metadata_document_supported"] = true
	})
	start, err := r.begin(t, r.caller, Want{App: "far"}, r.o.BaseURL+CallbackPath)
	if err != nil {
		t.Fatal(err)
	}
	response := p.consent(t, start.URL)
	u, _ := url.Parse(start.URL)
	if len(response.Mark) != markLength || u.Query().Get("client_id") != "registered" {
		t.Errorf("%s", start.URL)
	}
	response.Binding, response.Issuer = start.Binding, ""
	if _, _, err := r.Finish(t.Context(), as(r.caller), response); err != nil {
		t.Error(err)
	}
	p.change(func(p *provider) { p.metadata["registration_endpoint"] = "" })
	if _, err := r.begin(t, r.caller, Want{App: "far"}, r.o.BaseURL+CallbackPath); core.CodeOf(err) != core.CodeNotConfigured || !strings.Contains(err.Error(), r.o.BaseURL+CallbackPath+",") {
		t.Errorf("without registration: %v", err)
	}
}

func TestAConfiguredClientComesBeforeRegistration(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser, ClientID: "configured", Scopes: "only"})
	start, err := r.begin(t, r.caller, Want{App: "far"}, callback)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(start.URL)
	if u.Query().Get("client_id") != "configured" || u.Query().Get("scope") != "only" || p.count("/register") != 0 {
		t.Errorf("the browser is sent to %s", start.URL)
	}
}

func TestAnExpiryThatIsNotAWholeNumberOfSecondsIsUnderstood(t *testing.T) {
	for _, expiry := range []string{"0", "null", "4102444800", "4102444800.5", "4.1024448e9", "4102444800000", "1e300"} {
		p := newProvider(t)
		p.change(func(p *provider) {
			sends("/register", `{"client_id":"registered","client_secret_expires_at":`+expiry+`}`)(p, nil)
		})
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		r.link(t, p, r.caller, "")
		r.link(t, p, r.caller, "work")
		if n := p.count("/register"); n != 1 {
			t.Errorf("%s: %d registrations", expiry, n)
		}
	}
}

func TestARefusedRegistrationSaysWhatToDo(t *testing.T) {
	p := newProvider(t)
	p.change(func(p *provider) {
		responds("/register", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })(p, nil)
	})
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	if _, err := r.begin(t, r.caller, Want{App: "far"}, callback); err == nil || !strings.Contains(err.Error(), "returned 403") || !strings.Contains(err.Error(), "transport.auth.clientId") {
		t.Errorf("got %v", err)
	}
}

func TestTheMetadataDocumentIsUsedAtAPublicAddress(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	r.o.BaseURL = "https://tools.example.com"
	p.change(func(p *provider) { p.metadata["client_id_metadata_document_supported"] = true })
	start, err := r.begin(t, r.caller, Want{App: "far"}, r.o.BaseURL+CallbackPath)
	if err != nil {
		t.Fatal(err)
	}
	document, err := r.Document()
	u, _ := url.Parse(start.URL)
	if err != nil || u.Query().Get("client_id") != "https://tools.example.com/v1/accounts/client" || document.ID != u.Query().Get("client_id") ||
		!slices.Equal(document.RedirectURIs, []string{u.Query().Get("redirect_uri")}) {
		t.Errorf("%s, and the document is %+v: %v", start.URL, document, err)
	}
	for _, base := range []string{"", "http://tools.example.com", "https://localhost", "https://127.0.0.1", "https://10.0.0.1", "https://intranet"} {
		if r.o.BaseURL = base; r.isPublic() {
			t.Errorf("authorization servers are sent to %q", base)
		}
	}
}

// tenant gives a provider's issuer a path, and serves the metadata in only one place.
func tenant(issuer, metadata string) func(p *provider) {
	return func(p *provider) {
		p.resource["authorization_servers"] = []string{p.URL + issuer}
		p.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != metadata {
				return false
			}
			p.document(w, map[string]any{
				"issuer": p.URL + "/tenant", "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "registration_endpoint": p.URL + "/register",
				"code_challenge_methods_supported": []string{"S256"},
			}, nil)
			return true
		}
	}
}
