package relyingparty

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/ropewalk/ropewalk/plugins"
)

func check(t *testing.T, party *Party, token string) error {
	t.Helper()
	_, err := party.Check(t.Context(), token, nil)
	return err
}

// pass lets time pass. It must be called in a synctest bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the bubble's clock, not the machine's

// withKeyID returns a token with another key id, which invalidates its signature.
func withKeyID(token, kid string) string {
	_, rest, _ := strings.Cut(token, ".")
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"`+kid+`"}`)) + "." + rest
}

func TestAThousandRandomKeyIDsAMinuteCostSixFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		if err := check(t, party, p.token("first")); err != nil {
			t.Fatal(err)
		}
		good := p.token("first")
		for i := range 1000 {
			pass(60 * time.Millisecond)
			if err := check(t, party, withKeyID(good, fmt.Sprintf("random-%d", i))); !errors.Is(err, plugins.ErrUnauthenticated) {
				t.Fatalf("token %d: got %v, want a refusal", i, err)
			}
			if i%100 == 0 {
				if err := check(t, party, good); err != nil {
					t.Fatal(err)
				}
			}
		}
		if fetched := p.count("/jwks"); fetched > 6 || fetched < 4 {
			t.Errorf("keys were fetched %d times, want at most 6, and new keys to be found", fetched)
		}
		if fetched := p.count("/.well-known/openid-configuration"); fetched != 1 {
			t.Errorf("the document was fetched %d times, want once", fetched)
		}
	})
}

func TestAKeyIsFoundEvenIfATokenNamedItBeforeItWasPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		_ = check(t, party, p.token("first"))
		_ = check(t, party, p.token("early"))
		p.publish("first", "early")
		pass(renewEvery)
		if err := check(t, party, p.token("early")); err != nil {
			t.Errorf("a key that was published later: %v", err)
		}
	})
}

// A key id is unknown only if the provider was asked for it and did not return it. A key that is published just after a
// request is found by the next one.
func TestAKeyPublishedAfterALookupIsFoundByTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		_ = check(t, party, p.token("first"))
		_ = check(t, party, p.token("nobody"))
		p.publish("first", "second")
		pass(time.Second)
		if err := check(t, party, p.token("second")); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("before the provider is asked again: got %v, want a refusal", err)
		}
		pass(renewEvery - time.Second)
		if err := check(t, party, p.token("second")); err != nil {
			t.Errorf("when it is asked again: %v", err)
		}
	})
}

func TestKeysOutliveTheirProviderByADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		if err := check(t, party, p.token("first")); err != nil {
			t.Fatal(err)
		}
		p.setDown(true)
		for range 23 {
			pass(time.Hour)
			if err := check(t, party, p.token("first")); err != nil {
				t.Fatalf("a known key: %v", err)
			}
			synctest.Wait()
		}
		if err := check(t, party, p.token("unknown")); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("an unknown key with the provider down: got %v, want unavailable", err)
		}
		pass(2 * time.Hour)
		if err := check(t, party, p.token("first")); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("yesterday's key: got %v, want unavailable", err)
		}
		p.setDown(false)
		pass(renewEvery)
		if err := check(t, party, p.token("first")); err != nil {
			t.Errorf("once the provider has recovered: %v", err)
		}
	})
}

func TestACallWithTimeLeftWaitsForAProviderThatIsTooSlowForOneFetch(t *testing.T) {
	for limit, want := range map[time.Duration]error{renewEvery + time.Second: nil, renewEvery - time.Second: plugins.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			p := newProvider(t)
			party := p.party()
			began := time.Now()
			party.client.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
				if time.Since(began) < renewEvery {
					<-req.Context().Done()
				}
				return p.RoundTrip(req)
			})
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if _, err := party.Check(ctx, p.token("first"), nil); !errors.Is(err, want) {
				t.Errorf("with a deadline of %s: got %v, want %v", limit, err, want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestAWithdrawnKeyIsRefusedAfterTheKeysWereRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		old := p.token("first")
		_ = check(t, party, old)
		p.publish("second")
		pass(keysFresh + time.Second)
		_ = check(t, party, old) // may still be accepted, and causes a refresh of the keys
		synctest.Wait()
		pass(renewEvery)
		if err := check(t, party, old); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("got %v, want a refusal", err)
		}
	})
}

// The same holds if no token was verified in the meantime: docs/identity.md promises keys that are at most 5 minutes
// old.
func TestAWithdrawnKeyIsRefusedAtOnceAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		party := p.party()
		old := p.token("first")
		if err := check(t, party, old); err != nil {
			t.Fatal(err)
		}
		p.publish("second")
		pass(5 * time.Minute)
		if err := check(t, party, old); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("got %v, want a refusal", err)
		}
		if err := check(t, party, p.token("second")); err != nil {
			t.Errorf("the key that replaced it: %v", err)
		}
	})
}

func TestAColdStartPollsSparinglyAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		p.setDown(true)
		party := p.party()
		for range 60 {
			if err := check(t, party, p.token("first")); !errors.Is(err, plugins.ErrUnavailable) {
				t.Fatalf("got %v, want unavailable", err)
			}
			pass(time.Second)
		}
		if asked := p.count("/.well-known/oauth-authorization-server"); asked > 6 {
			t.Errorf("a provider that is down got %d requests in a minute", asked)
		}
		p.setDown(false)
		pass(renewEvery)
		if err := check(t, party, p.token("first")); err != nil {
			t.Errorf("once the provider has recovered: %v", err)
		}
	})
}

func TestACallerWaitsForASilentProviderAsLongAsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		p.pages["/.well-known/openid-configuration"] = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		party, token, began := p.party(), p.token("first"), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := party.Check(ctx, token, nil); !errors.Is(err, plugins.ErrUnavailable) || time.Since(began) != time.Second {
			t.Errorf("with a deadline of a second: %v after %v, want unavailable", err, time.Since(began))
		}
		if _, err := party.Check(t.Context(), token, nil); !errors.Is(err, plugins.ErrUnavailable) || time.Since(began) != 10*time.Second {
			t.Errorf("without a deadline: %v after %v, want unavailable after 10 s", err, time.Since(began))
		}
	})
}

func TestKeysAreFetchedAsSoonAsTheMetadataMayBeFetchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		p.setDown(true)
		party := p.party()
		if _, err := party.Metadata(t.Context()); !errors.Is(err, plugins.ErrUnavailable) {
			t.Fatalf("metadata with the provider down: got %v, want unavailable", err)
		}
		pass(renewEvery - time.Second)
		if err := check(t, party, p.token("first")); !errors.Is(err, plugins.ErrUnavailable) {
			t.Fatalf("with the provider down: got %v, want unavailable", err)
		}
		p.setDown(false)
		pass(time.Second)
		if err := check(t, party, p.token("first")); err != nil {
			t.Errorf("a second later, when the metadata may be asked for again: %v", err)
		}
	})
}

func TestATokenWithoutAKeyIDNeedsASetOfOneKey(t *testing.T) {
	p := newProvider(t)
	p.keys[""] = p.keys["first"]
	if err := check(t, p.party(), p.token("")); err != nil {
		t.Errorf("one key: %v", err)
	}
	p.publish("first", "second")
	if err := check(t, p.party(), p.token("")); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("two keys: got %v, want a refusal", err)
	}
}

func TestOnlyRSAKeysForRS256SignaturesAreUsed(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	inJSON := func(key *rsa.PrivateKey, more string) string {
		public, _ := jwk.FromRaw(&key.PublicKey)
		raw, _ := json.Marshal(public)
		return strings.TrimSuffix(string(raw), "}") + `,"kid":"k"` + more + "}"
	}
	with := func(more string) string { return inJSON(key, more) }
	for name, c := range map[string]struct {
		key  string
		used bool
	}{
		"plain":                     {with(``), true},
		"for signatures":            {with(`,"use":"sig"`), true},
		"for RS256":                 {with(`,"alg":"RS256"`), true},
		"to verify":                 {with(`,"key_ops":["verify"]`), true},
		"for encryption":            {with(`,"use":"enc"`), false},
		"for PS256":                 {with(`,"alg":"PS256"`), false},
		"for RSA-OAEP":              {with(`,"alg":"RSA-OAEP"`), false},
		"to wrap keys":              {with(`,"key_ops":["wrapKey"]`), false},
		"symmetric":                 {`{"kty":"oct","kid":"k","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"}`, false},
		"elliptic":                  {`{"kty":"EC","kid":"k","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`, false},
		"of 1024 bits":              {inJSON(small, ``), false},
		"of a type unknown to jwx":  {`{"kty":"XYZ","kid":"k"}`, false},
		"with an exponent of three": {strings.Replace(with(``), `"e":"AQAB"`, `"e":"Aw"`, 1), true},
		"with an exponent of one":   {strings.Replace(with(``), `"e":"AQAB"`, `"e":"AQ"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := parseKeys([]byte(`{"keys":[`+c.key+`]}`), []string{"RS256"})
			if used := err == nil && len(set["k"]) == 1; used != c.used {
				t.Errorf("used %v (%v), want %v", used, err, c.used)
			}
		})
	}
}
