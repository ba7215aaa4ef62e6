package accounts

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// exchanger is a token endpoint that exchanges tokens (RFC 8693).
type exchanger struct {
	*httptest.Server
	mu     sync.Mutex
	forms  []url.Values
	answer string // instead of a token
	status int
	life   int
}

func newExchanger(t *testing.T) *exchanger {
	t.Helper()
	e := &exchanger{life: 3600}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.forms = append(e.forms, r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		if e.answer != "" {
			w.WriteHeader(max(e.status, http.StatusOK))
			_, _ = fmt.Fprint(w, e.answer)
			return
		}
		_, _ = fmt.Fprintf(w, `{"access_token":"%s-at-%s-%d","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":%d}`,
			r.PostForm.Get("subject_token"), r.PostForm.Get("audience"), len(e.forms), e.life)
	}))
	t.Cleanup(e.Close)
	return e
}

func exchangeRig(t *testing.T, e *exchanger) *rig {
	t.Helper()
	return newRig(t, newProvider(t), core.RemoteAuth{
		Type: core.AuthExchange, TokenURL: e.URL, Audience: "far", ClientID: "ropewalk", ClientSecret: "s", Scopes: "read write",
	})
}

// call returns the app's token for a call by a person who has the given token of the identity provider.
func (r *rig) call(t *testing.T, c core.Caller, bearer, refused core.Secret) (core.Secret, error) {
	t.Helper()
	c.Bearer = bearer
	a, err := r.Choose(t.Context(), c, "far", core.AccountWanted{})
	if err != nil {
		return "", err
	}
	token, err := r.Authorizer(a.ID).Token(t.Context(), refused)
	return token.Access, err
}

func TestATokenIsExchangedOnceForEachPerson(t *testing.T) {
	e := newExchanger(t)
	r := exchangeRig(t, e)
	bob := r.person(t, "bob")
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			for c, want := range map[string]core.Caller{"alice": r.caller, "bob": bob} {
				if got, err := r.call(t, want, core.Secret(c), ""); err != nil || !strings.HasPrefix(got.Reveal(), c+"-at-far-") {
					t.Errorf("%s calls with %s: %v", c, got.Reveal(), err)
				}
			}
		})
	}
	calls.Wait()
	if len(e.forms) != 2 {
		t.Fatalf("%d exchanges", len(e.forms))
	}
	f := e.forms[0]
	if f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" || f.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:access_token" ||
		f.Get("audience") != "far" || f.Get("scope") != "read write" || f.Has("resource") {
		t.Errorf("the request is %v", f)
	}
	// A token that the app refuses is exchanged again, but not if it is fresh.
	first, err := r.call(t, bob, "bob", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.call(t, bob, "bob", first); core.CodeOf(err) != core.CodeUnavailable || len(e.forms) != 2 {
		t.Errorf("a fresh token that is refused: %v after %d exchanges", err, len(e.forms))
	}
}

func TestATokenThatCannotBeExchangedDoesNotUseAnotherTokensResult(t *testing.T) {
	e := newExchanger(t)
	r := exchangeRig(t, e)
	wide, err := r.call(t, r.caller, "wide", "")
	if err != nil {
		t.Fatal(err)
	}
	e.answer, e.status = `{"error":"access_denied"}`, http.StatusBadRequest
	if got, err := r.call(t, r.caller, "narrow", ""); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("the other token got %s: %v", got.Reveal(), err)
	}
	if got, err := r.call(t, r.caller, "wide", ""); err != nil || got != wide {
		t.Errorf("the first token got %s: %v", got.Reveal(), err)
	}
}

func TestAnExchangedTokenIsDroppedWhenItExpires(t *testing.T) {
	e := newExchanger(t)
	e.life = -1
	r := exchangeRig(t, e)
	for _, bearer := range []core.Secret{"old", "new"} {
		if got, err := r.call(t, r.caller, bearer, ""); err != nil || !strings.HasPrefix(got.Reveal(), bearer.Reveal()) {
			t.Errorf("%s: %v", got.Reveal(), err)
		}
	}
	if len(e.forms) != 2 {
		t.Errorf("%d exchanges", len(e.forms))
	}
}

func TestACallerWithoutATokenExchangesNone(t *testing.T) {
	e := newExchanger(t)
	r := exchangeRig(t, e)
	if _, err := r.call(t, r.caller, "", ""); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a browser session: %v", err)
	}
	if err := r.MayLink(t.Context(), r.caller, "far"); core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("an account is linked: %v", err)
	}
	for answer, want := range map[string]core.Code{
		`{"access_token":"mine","token_type":"Bearer"}`:                           core.CodeUnavailable, // the caller's own
		`{"access_token":"a","token_type":"N_A"}`:                                 core.CodeUnavailable,
		`{"error":"temporarily_unavailable"}`:                                     core.CodeUnavailable,
		`{"error":"invalid_target","error_description":"secret-in-the-response"}`: core.CodeForbidden,
	} {
		e.answer = answer
		if strings.Contains(answer, "error") {
			e.status = http.StatusBadRequest
		}
		got, err := r.call(t, r.caller, "mine", "")
		if core.CodeOf(err) != want || got != "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", answer, err)
		}
		e.status = 0
	}
}

// Nobody links an account, so the app is read when the first caller lists tools.
func TestTheFirstCallerPublishesAnAppThatExchangesTokens(t *testing.T) {
	r := exchangeRig(t, newExchanger(t))
	r.PublishExchangeApps(r.caller)
	c := r.caller
	c.Bearer = "alice"
	r.PublishExchangeApps(c)
	r.PublishExchangeApps(c)
	if len(r.linked) != 1 || r.linked[0].App != "far" || r.linked[0].Owner != c.User.ID {
		t.Fatalf("read with %+v", r.linked)
	}
	if ok, err := r.Manager.Publish(t.Context(), r.linked[0].ID, core.AppLists{Version: "1"}); err != nil || !ok {
		t.Errorf("%v", err)
	}
	if lists, err := r.Published(t.Context(), core.DefaultWorkspaceID, "far"); err != nil || lists.Version != "1" {
		t.Errorf("%+v: %v", lists, err)
	}
}
