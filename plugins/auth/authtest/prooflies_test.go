package authtest_test

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// binder is an honest adapter with the capability verify.request: it checks DPoP proofs (RFC 9449) and certificates
// (RFC 8705), and leaves the rest to the adapter in it. Each of faults is something that it does wrong.
type binder struct {
	honest
	faults []string
	meet   chan struct{}

	checked sync.Map // the token that is not bound, by the one that is

	mu    sync.Mutex
	seen  map[string]bool // by jti
	order []string
}

func (*binder) VerifiesRequests() {}

func (b *binder) has(fault string) bool { return slices.Contains(b.faults, fault) }

func refused(reason string) error { return fmt.Errorf("%w: %s", plugins.ErrUnauthenticated, reason) }

func (b *binder) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	cnf, bound := claimsOf(req.Token)["cnf"]
	if !bound {
		return b.honest.Verify(ctx, req)
	}
	free, known := b.checked.Load(req.Token)
	if !known {
		if !b.has("signature of the token") && !signedByProvider(b.honest, req.Token) {
			return auth.Identity{}, refused("a bad signature")
		}
		free, _ = b.checked.LoadOrStore(req.Token, b.unbound(req.Token))
	}
	token, _ := free.(string)
	id, err := b.honest.Verify(ctx, auth.VerifyRequest{Token: token, Audiences: req.Audiences})
	if err != nil {
		return id, err
	}
	if err := b.proven(cnf, req); err != nil {
		if b.has("repeats") {
			err = fmt.Errorf("%w: %s", err, req.Token)
		}
		return auth.Identity{}, err
	}
	return id, nil
}

// signedByProvider checks the signature of a token alone.
func signedByProvider(h honest, token string) bool {
	set, err := jwk.Parse([]byte(answerOf(h, "/oauth2/jwks")))
	if err != nil {
		return false
	}
	key, ok := set.LookupKeyID(headerOf(token, "kid"))
	if !ok || headerOf(token, "alg") != "RS256" {
		return false
	}
	_, err = jws.Verify([]byte(token), jws.WithKey(jwa.RS256, key))
	return err == nil
}

// unbound is a token with the same claims that is not bound.
func (b *binder) unbound(token string) string {
	changes := map[string]any{}
	for name := range b.provider.Claims() {
		changes[name] = nil
	}
	for name, value := range claimsOf(token) {
		changes[name] = value
	}
	changes["cnf"] = nil
	return b.provider.Token(changes)
}

func (b *binder) proven(cnf any, req auth.VerifyRequest) error {
	binding, _ := cnf.(map[string]any)
	if print, ok := binding["x5t#S256"].(string); ok && print != "" {
		same := print == req.ClientCertificateSHA256
		switch {
		case b.has("any certificate"):
			same = req.ClientCertificateSHA256 != ""
		case b.has("case of certificates"):
			same = strings.EqualFold(print, req.ClientCertificateSHA256)
		case b.has("kinds"):
			same = same || req.Headers["dpop"] != ""
		}
		if !same {
			return refused("another certificate")
		}
		return nil
	}
	print, ok := binding["jkt"].(string)
	if !ok || print == "" {
		if b.has("unknown bindings") {
			return nil
		}
		return refused("bound in an unknown way")
	}
	if b.has("certificates for keys") && print == req.ClientCertificateSHA256 {
		return nil
	}
	return b.dpop(print, req)
}

// dpop checks a DPoP proof of the key with a thumbprint.
func (b *binder) dpop(print string, req auth.VerifyRequest) error {
	proof := req.Headers["dpop"]
	if b.has("once is enough") && b.knows("print "+print) && proof == "" {
		return nil
	}
	if strings.Count(proof, ".") != 2 && !b.has("form") {
		return refused("not a proof")
	}
	if b.has("form") && proof != "" {
		proof = strings.Split(proof, ",")[0]
	}
	raw, err := json.Marshal(part(proof, 0)["jwk"])
	if err != nil {
		return refused("no key")
	}
	key, err := jwk.ParseKey(raw)
	if err != nil {
		return refused("no key")
	}
	if secret, _ := jwk.IsPrivateKey(key); secret && !b.has("form") {
		return refused("a private key")
	}
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil || base64.RawURLEncoding.EncodeToString(sum) != print && !b.has("key") {
		return refused("another key")
	}
	alg := jwa.SignatureAlgorithm(headerOf(proof, "alg"))
	if !slices.Contains([]jwa.SignatureAlgorithm{jwa.ES256, jwa.RS256, jwa.EdDSA}, alg) && !b.has("signature") {
		return refused("another algorithm")
	}
	if _, err := jws.Verify([]byte(proof), jws.WithKey(alg, key)); err != nil && !b.has("signature") {
		return refused("a bad signature of the proof")
	}
	if headerOf(proof, "typ") != "dpop+jwt" && !b.has("form") {
		return refused("another type")
	}
	if err := b.about(claimsOf(proof), req); err != nil {
		return err
	}
	if b.has("text") {
		if !b.remember("proof " + proof) {
			return refused("the proof was seen before")
		}
		return nil
	}
	return b.once(print, claimsOf(proof))
}

// about checks what a proof is for.
func (b *binder) about(claims map[string]any, req auth.VerifyRequest) error {
	text := func(name string) string { s, _ := claims[name].(string); return s }
	sum := sha256.Sum256([]byte(req.Token))
	issued, _ := claims["iat"].(float64)
	age := time.Since(time.Unix(int64(issued), 0))
	sameURL := text("htu") == req.URL
	switch {
	case b.has("host"):
		sameURL = strings.HasPrefix(text("htu"), "https://ropewalk.example/")
	case b.has("path"):
		sameURL = strings.HasSuffix(text("htu"), "/mcp")
	case b.has("prefix"):
		sameURL = strings.HasPrefix(text("htu"), req.URL)
	}
	switch {
	case text("htm") != req.Method && !b.has("method") && (!b.has("case of methods") || !strings.EqualFold(text("htm"), req.Method)):
		return refused("another method")
	case !sameURL:
		return refused("another URL")
	case text("ath") != base64.RawURLEncoding.EncodeToString(sum[:]) && !b.has("ath") && (text("ath") != "" || !b.has("no ath")):
		return refused("another token")
	case (age > time.Minute || age < -time.Minute) && !b.has("iat"):
		return refused("another time")
	case text("jti") == "" && !b.has("jti"):
		return refused("no jti")
	}
	return nil
}

func (b *binder) knows(what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[what]
}

func (b *binder) once(print string, claims map[string]any) error {
	jti, _ := claims["jti"].(string)
	if b.has("race") && !b.knows(jti) {
		select { // until a second call has not found it either
		case b.meet <- struct{}{}:
		case <-b.meet:
		case <-time.After(5 * time.Second):
		}
		b.remember(jti)
		return nil
	}
	b.mu.Lock()
	again := b.seen[jti]
	b.mu.Unlock()
	if again && !b.has("replays") {
		return refused("the proof was seen before")
	}
	if !b.remember(jti) && !b.has("replays") {
		return refused("the proof was seen before")
	}
	b.remember("print " + print)
	return nil
}

// remember reports whether something is new.
func (b *binder) remember(what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[what] {
		return false
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[what] = true
	b.order = append(b.order, what)
	if b.has("few") && len(b.order) > 1000 {
		delete(b.seen, b.order[0])
		b.order = b.order[1:]
	}
	return true
}

func proofLies() []lie {
	proof := func(clause string) string { return "a DPoP proof " + clause + " is refused" }
	wrong := func(faults ...string) func(honest) auth.Adapter {
		return func(h honest) auth.Adapter { return &binder{honest: h, faults: faults, meet: make(chan struct{})} }
	}
	return []lie{
		{"declares verify.request and accepts no bound token", "a bound token is accepted with a DPoP proof or with its certificate", func(h honest) auth.Adapter { return h }},
		{"remembers no proofs", "a DPoP proof is good once", wrong("replays")},
		{"remembers proofs by their text", "a DPoP proof is good once however its signature is written", wrong("text")},
		{"compares methods of proofs without case", proof("for another method"), wrong("case of methods")},
		{"remembers the last thousand proofs", "a DPoP proof is good once however many others came meanwhile", wrong("few")},
		{"looks first and remembers later", "of one DPoP proof that comes many times at once, one is accepted", wrong("race")},
		{"checks one proof at a time and refuses others", "different DPoP proofs at once are all accepted", func(h honest) auth.Adapter { return &busyBinder{binder: binder{honest: h}} }},
		{"does not check the signature of bound tokens", "no proof makes a bad token good", wrong("signature of the token")},
		{"asks for one proof of each key", "a bound token without a proof is refused, also after one was accepted", wrong("once is enough")},
		{"accepts any certificate", "a token that is bound to a certificate is accepted from that certificate alone", wrong("any certificate")},
		{"compares certificates without case", "a token that is bound to a certificate is accepted from that certificate alone", wrong("case of certificates")},
		{"accepts a proof for a certificate", "a proof of one kind does not stand in for the other", wrong("kinds")},
		{"accepts a certificate for a proof", "a proof of one kind does not stand in for the other", wrong("certificates for keys")},
		{"accepts bindings that it does not know", "a token that is bound in an unknown way is refused", wrong("unknown bindings")},
		{"repeats bound tokens", "no error about a proof repeats the token", wrong("repeats")},
		{"does not compare the method of a proof", proof("for another method"), wrong("method")},
		{"compares the host of a proof alone", proof("for another URL"), wrong("host")},
		{"compares the path of a proof alone", proof("for another URL"), wrong("path")},
		{"compares the start of the URL of a proof", proof("for another URL"), wrong("prefix")},
		{"does not compare the token of a proof", proof("for another token"), wrong("ath")},
		{"needs no token in a proof", proof("for another token"), wrong("no ath")},
		{"does not compare the key of a proof", proof("of another key"), wrong("key")},
		{"does not check the signature of a proof", proof("with a bad signature"), wrong("signature")},
		{"takes other JWTs for proofs", proof("of another form"), wrong("form")},
		{"needs no jti in a proof", proof("without a jti"), wrong("jti")},
		{"does not look at the time of a proof", proof("of another day"), wrong("iat")},
	}
}

// busyBinder answers proofs that come while another one is checked as if they were bad.
type busyBinder struct {
	binder
	busy sync.Mutex
}

func (b *busyBinder) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	if !b.busy.TryLock() {
		return auth.Identity{}, refused("too many proofs")
	}
	defer b.busy.Unlock()
	return b.binder.Verify(ctx, req)
}
