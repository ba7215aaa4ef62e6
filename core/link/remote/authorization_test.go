package remote

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// numbered returns the tokens t0, t1 and so on, up to last, with a new one each time the previous one is rejected.
type numbered struct {
	key      *ProofKey
	resource string
	number   int
	last     int
}

func (n *numbered) Token(_ context.Context, refused core.Secret) (Token, error) {
	if refused != "" {
		if n.number++; n.number > n.last {
			return Token{}, core.Errorf(core.CodeUnavailable, "it is fresh")
		}
	}
	return Token{Access: core.Secret(fmt.Sprintf("t%d", n.number)), Key: n.key, Resource: n.resource}, nil
}

// post sends a request with an account to a server.
func post(t *testing.T, a Authorizer, serve http.HandlerFunc) error {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp?q=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	c := newRoundTripper(request.URL, nil, Options{AllowPrivate: true, ConnectTimeout: defaultConnectTimeout, HeaderTimeout: defaultHeaderTimeout, MaxAnswer: 1 << 20, Logger: hclog.NewNullLogger(), Authorizer: a})
	t.Cleanup(c.base.CloseIdleConnections)
	response, err := c.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

func TestARejectedTokenIsReplacedIfThatMayHelp(t *testing.T) {
	for _, c := range []struct {
		name      string
		status    int
		challenge string
		fresh     int // number of the token that the server accepts
		last      int // number of the last token; 0 means 5
		requests  int
		fails     bool
		code      core.Code // the error's code
	}{
		{name: "a token that has expired", status: 401, challenge: `Bearer error="invalid_token"`, fresh: 1, requests: 2},
		{name: "a token that has expired, with a server that returns 403", status: 403, challenge: `Bearer error="invalid_token"`, fresh: 1, requests: 2},
		{name: "no challenge", status: 401, fresh: 1, requests: 2},
		{name: "a token that a peer server has replaced", status: 401, fresh: 2, requests: 3},
		{name: "every token", status: 401, fresh: 9, requests: 3, fails: true},
		{name: "a token that has expired, with a server that returns 403 without a reason", status: 403, fresh: 1, requests: 2},
		{name: "403 for every token", status: 403, fresh: 9, requests: 2, fails: true},
		{name: "403 for a token that was just renewed", status: 403, fresh: 9, last: -1, requests: 1, fails: true},
		{name: "too few rights", status: 403, challenge: `Bearer error="insufficient_scope", scope="more"`, fresh: 1, requests: 1, fails: true, code: core.CodeLoginNeeded},
		{name: "too few rights, next to a challenge that cannot be read", status: 403, challenge: "Negotiate YII\nBearer error=\"insufficient_scope\"", fresh: 1, requests: 1, fails: true, code: core.CodeLoginNeeded},
		{name: "a nonce for a bearer token", status: 401, challenge: `DPoP error="use_dpop_nonce"`, fresh: 1, requests: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var bodies []string
			err := post(t, &numbered{last: cmp.Or(c.last, 5)}, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bodies = append(bodies, string(body)); r.Header.Get("Authorization") == fmt.Sprintf("Bearer t%d", c.fresh) {
					return
				}
				w.Header()["Www-Authenticate"] = strings.Split(c.challenge, "\n")
				w.WriteHeader(c.status)
			})
			if c.fails && c.status == http.StatusForbidden && c.code == "" && (err == nil || !strings.Contains(err.Error(), notAllowed)) {
				t.Errorf("failed for another reason: %v", err)
			}
			if (err != nil) != c.fails || c.code != "" && core.CodeOf(err) != c.code {
				t.Errorf("%v", err)
			}
			if len(bodies) != c.requests || slices.ContainsFunc(bodies, func(b string) bool { return b != "body" }) {
				t.Errorf("requests with the bodies %q, want %d", bodies, c.requests)
			}
		})
	}
}

// Older versions stored such headers.
func TestAConfiguredHeaderDoesNotReplaceTheAccount(t *testing.T) {
	header := func(auth core.RemoteAuth) string {
		h, err := configuredHeaders(core.Remote{Auth: auth, Headers: map[string]core.Secret{"authorization": "Bearer fixed", "DPOP": "p", "cookie": "c", "X-Api-Key": "k"}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Sorted(maps.Keys(h)), " ")
	}
	for kind, want := range map[string]string{"none": "Authorization Cookie Dpop X-Api-Key", core.AuthUser: "X-Api-Key", core.AuthShared: "X-Api-Key"} {
		if got := header(core.RemoteAuth{Type: kind}); got != want {
			t.Errorf("%s: the headers are %s, want %s", kind, got, want)
		}
	}
}

// The address of an app may change after an account is linked.
func TestATokenIsSentOnlyToTheServerItWasIssuedFor(t *testing.T) {
	requests := 0
	err := post(t, &numbered{resource: "https://old.example/mcp", last: 5}, func(http.ResponseWriter, *http.Request) { requests++ })
	if core.CodeOf(err) != core.CodeLoginNeeded || requests > 0 {
		t.Errorf("%v after %d requests", err, requests)
	}
	app, err := url.Parse("https://far.example/a/mcp?q=1")
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]bool{
		"https://far.example/a/mcp?q=1": true, "https://far.example/a/mcp": true, "https://FAR.example:443/a/": true, "https://far.example": true,
		"https://far.example/a/mcp?q=2": false, "https://far.example/a/m": false, "https://far.example:444/a/mcp": false,
		"http://far.example/a/mcp": false, "https://old.example/a/mcp": false, "https://far.example/a/mcp#x": false, "https://x@far.example": false, "": false,
	} {
		if got := Covers(resource, app); got != want {
			t.Errorf("%s: %v", resource, got)
		}
	}
}

func newKey(t *testing.T) *ProofKey {
	t.Helper()
	secret, err := NewProofKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseProofKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A server that asks for a nonce has not rejected the token, even if it also sends a challenge for bearer tokens.
func TestARequestForANonceDoesNotRejectTheToken(t *testing.T) {
	for _, c := range []struct {
		name, challenge string
		asks, requests  int
		fails           bool
	}{
		{"next to another challenge", `Bearer, DPoP error="use_dpop_nonce", algs="ES256"`, 1, 2, false},
		{"next to another error", `Bearer error="invalid_token", DPoP error="use_dpop_nonce"`, 1, 2, false},
		{"twice", `DPoP error="use_dpop_nonce"`, 2, 3, false},
		{"a nonce request each time", `DPoP error="use_dpop_nonce"`, 9, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokens, requests := &numbered{key: newKey(t), last: 5}, 0
			err := post(t, tokens, func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests > c.asks {
					return
				}
				w.Header().Set("DPoP-Nonce", fmt.Sprint(requests))
				w.Header().Set("WWW-Authenticate", c.challenge)
				w.WriteHeader(http.StatusUnauthorized)
			})
			if (err != nil) != c.fails || requests != c.requests || tokens.number != 0 {
				t.Errorf("%v after %d requests, with token %d", err, requests, tokens.number)
			}
		})
	}
}

func TestAProofForAnAddressWithoutAPathUsesTheRequestsPath(t *testing.T) {
	proof, err := newKey(t).proof(http.MethodPost, &url.URL{Scheme: "https", Host: "far.example", RawQuery: "q=1"}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if claims, _, err := readProof(proof); err != nil || claims["htu"] != "https://far.example/" {
		t.Errorf("%v: %v", claims["htu"], err)
	}
}

func TestRequestsProvePossessionOfTheKey(t *testing.T) {
	secret, err := NewProofKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseProofKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	var seen, refused []string // ids of proofs
	nonce := ""
	check := func(r *http.Request) error {
		access, ok := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
		if !ok || len(r.Header.Values("DPoP")) != 1 {
			return fmt.Errorf("the headers are %v", r.Header)
		}
		claims, thumbprint, err := readProof(r.Header.Get("DPoP"))
		if err != nil {
			return err
		}
		ath := sha256.Sum256([]byte(access))
		want := map[string]any{"htm": "POST", "htu": "http://" + r.Host + "/mcp", "ath": base64.RawURLEncoding.EncodeToString(ath[:])}
		if nonce != "" {
			want["nonce"] = nonce
		}
		for name, value := range want {
			if claims[name] != value {
				return fmt.Errorf("%s is %v, want %v", name, claims[name], value)
			}
		}
		id, _ := claims["jti"].(string)
		if id == "" || slices.Contains(seen, id) || thumbprint != key.Thumbprint() {
			return fmt.Errorf("the proof %q of the key %s", id, thumbprint)
		}
		seen = append(seen, id)
		return nil
	}
	err = post(t, &numbered{key: key, last: 5}, func(w http.ResponseWriter, r *http.Request) {
		err := check(r)
		switch {
		case err != nil:
			refused = append(refused, err.Error())
			w.WriteHeader(http.StatusBadRequest)
		case nonce == "":
			nonce = "n-1"
			w.Header().Set("DPoP-Nonce", nonce)
			w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") == "DPoP t0": // the nonce is kept
			w.Header().Set("WWW-Authenticate", `DPoP error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	if err != nil || len(refused) > 0 || len(seen) != 3 {
		t.Errorf("%v after %d proofs; rejected: %v", err, len(seen), refused)
	}
	for _, wrong := range []core.Secret{"x", "eA==", secret[:40]} {
		if _, err := ParseProofKey(wrong); err == nil || strings.Contains(err.Error(), wrong.Reveal()+"\"") {
			t.Errorf("%v", err)
		}
	}
}

// readProof returns the claims of a proof and the thumbprint of its key, if the signature is valid.
func readProof(proof string) (claims map[string]any, thumbprint string, err error) {
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return nil, "", errors.New("a proof has three parts")
	}
	var raw [3][]byte
	for i, part := range parts {
		if raw[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			return nil, "", err
		}
	}
	var header struct {
		Type      string                          `json:"typ"`
		Algorithm string                          `json:"alg"`
		Key       struct{ KTY, Crv, X, Y string } `json:"jwk"`
	}
	if err := json.Unmarshal(raw[0], &header); err != nil {
		return nil, "", err
	}
	x, errX := base64.RawURLEncoding.DecodeString(header.Key.X)
	y, errY := base64.RawURLEncoding.DecodeString(header.Key.Y)
	if err := errors.Join(errX, errY, json.Unmarshal(raw[1], &claims)); err != nil {
		return nil, "", err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if err != nil {
		return nil, "", err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if header.Type != "dpop+jwt" || header.Algorithm != "ES256" || len(raw[2]) != 64 ||
		!ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(raw[2][:32]), new(big.Int).SetBytes(raw[2][32:])) {
		return nil, "", fmt.Errorf("the signature of %s is invalid", raw[0])
	}
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":%q,"kty":%q,"x":%q,"y":%q}`, header.Key.Crv, header.Key.KTY, header.Key.X, header.Key.Y))
	return claims, base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
