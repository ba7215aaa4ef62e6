package accounts

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// direct is a transport that calls a provider without a network. If down is set, it handles requests instead.
type direct struct {
	provider *provider
	down     func(r *http.Request) (*http.Response, error)
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: connTo{ip: net.IPv4(127, 0, 0, 1)}})
	}
	if d.down != nil {
		return d.down(r)
	}
	w := httptest.NewRecorder()
	d.provider.ServeHTTP(w, r)
	return w.Result(), nil
}

// Three times in a day, an authorization server is unusable for ten minutes, each time for a different reason. A person
// calls an app every half minute. No grant is lost, nobody has to log in, and calls fail only during an outage.
func TestOutagesOfAProviderLoseNoGrant(t *testing.T) {
	for name, seconds := range map[string]int{"tokens for an hour": 3600, "tokens for five minutes": 300} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := idleProvider("http://127.0.0.1:2")
				p.life = seconds
				network := &direct{provider: p}
				r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
				r.private.Transport = network
				a := r.link(t, p, r.caller, "")
				r.eventNames()
				outages := map[time.Duration]func(r *http.Request) (*http.Response, error){
					3*time.Hour - 6*time.Minute: func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
					10*time.Hour - 3*time.Minute: func(*http.Request) (*http.Response, error) {
						return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Header: http.Header{}}, nil
					},
					17 * time.Hour: func(r *http.Request) (*http.Response, error) {
						<-r.Context().Done()
						return nil, r.Context().Err()
					},
				}
				failed, began, up := 0, time.Now(), time.Time{}
				for now := time.Duration(0); now < 24*time.Hour; now = time.Since(began) {
					for start, down := range outages {
						if now >= start {
							delete(outages, start)
							network.down, up = down, time.Now().Add(10*time.Minute)
						}
					}
					if network.down != nil && time.Now().After(up) {
						network.down = nil
					}
					_, err := r.Authorizer(a.ID).Token(t.Context(), "")
					switch {
					case err == nil:
					case core.CodeOf(err) != core.CodeUnavailable || network.down == nil:
						t.Fatalf("after %v: %v", now, err)
					default:
						failed++
					}
					time.Sleep(30 * time.Second) //nolint:forbidigo // of the bubble
				}
				if now, err := r.store.Account(t.Context(), a.ID); err != nil || now.State != core.AccountActive || len(p.current) != 1 || len(outages) != 0 {
					t.Errorf("the account is %s, with %d grants: %v", now.State, len(p.current), err)
				}
				if names := r.eventNames(); len(names) > 0 {
					t.Errorf("events: %v", names)
				}
				if failed == 0 {
					t.Error("no outage was noticed")
				}
			})
		})
	}
}

// The authorization server uses up the refresh token immediately, but responds after 25 seconds. Meanwhile, calls
// wait for ten seconds, and then use the current token if it has not expired.
func TestASlowResponseLosesNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := idleProvider("http://127.0.0.1:2")
		network := &direct{provider: p}
		r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
		r.private.Transport = network
		a := r.link(t, p, r.caller, "")
		network.down = func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			select {
			case <-time.After(25 * time.Second):
				return w.Result(), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		if _, err := r.Authorizer(a.ID).Token(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name  string
			after time.Duration // since the last renewal
			takes time.Duration
			fresh bool
		}{{"a token that expires soon", time.Hour - 50*time.Second, exchangeWithin, false}, {"an expired token", 2 * time.Hour, 25 * time.Second, true}} {
			<-time.After(c.after)
			before, err := r.store.Account(t.Context(), a.ID)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			token, err := r.Authorizer(a.ID).Token(t.Context(), "")
			if took := time.Since(began); err != nil || took != c.takes || (token.Access != before.Grant.AccessToken) != c.fresh {
				t.Errorf("%s: after %v: %v", c.name, took, err)
			}
			<-time.After(time.Minute)
			synctest.Wait()
		}
		if now, err := r.store.Account(t.Context(), a.ID); err != nil || now.State != core.AccountActive || len(p.current) != 1 || p.count("/token refresh_token") != 2 {
			t.Errorf("the account is %s, with %d grants after %d renewals: %v", now.State, len(p.current), p.count("/token refresh_token"), err)
		}
	})
}
