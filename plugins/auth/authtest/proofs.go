package authtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// proofs are the promises of the capability "verify.request".
func proofs(s Subject) []check {
	const proof = "by a DPoP proof (RFC 9449) for this method, URL and token that it has not seen before"
	const only = "It accepts a token that is bound to a key (the claim cnf) only if the request proves that the sender has the key"
	const certificate, concurrent = "by the client certificate of the token (RFC 8705)", "Calls come concurrently, each with a deadline"
	switch {
	case !s.Binds:
		return nil
	case s.Keys == nil:
		return []check{{name: "an adapter with the capability verify.request accepts a bound token with a proof", contract: only, run: func(context.Context, *stage) error {
			return kit.Skip("the kit checks it on adapters of OpenID providers alone")
		}}}
	}
	all := []check{
		{name: "a bound token is accepted with a DPoP proof or with its certificate", contract: only, run: acceptsProofs},
		{name: "a DPoP proof is good once", contract: proof, run: proving(proofIsGoodOnce)},
		{name: "a DPoP proof is good once however its signature is written", contract: proof, run: proving(rewrittenProofs)},
		{name: "a DPoP proof is good once however many others came meanwhile", contract: proof, run: proving(remembersProofs)},
		{name: "of one DPoP proof that comes many times at once, one is accepted", contract: proof, run: proving(oneOfProofsAtOnce)},
		{name: "different DPoP proofs at once are all accepted", contract: concurrent, setup: AnyOrganization, run: proving(proofsAtOnce)},
		{name: "no proof makes a bad token good", contract: "a bad signature, an algorithm that Describe does not name, a wrong issuer", run: proving(proofSavesNothing)},
		{name: "a bound token without a proof is refused, also after one was accepted", contract: only, run: proving(needsProofEachTime)},
		{name: "a token that is bound to a certificate is accepted from that certificate alone", contract: certificate, run: ownCertificateAlone},
		{name: "a proof of one kind does not stand in for the other", contract: only, run: proving(kindsDiffer)},
		{name: "a token that is bound in an unknown way is refused", contract: only, run: proving(unknownBindings)},
		{name: "no error about a proof repeats the token", contract: "No token, code or secret appears in an error or a log line", run: proving(repeatsNoBoundToken)},
	}
	for _, clause := range proofClauses() {
		all = append(all, check{name: "a DPoP proof " + clause.name + " is refused", contract: proof, run: proving(refusesProofs(clause))})
	}
	return all
}

// The request that proofs are for.
const (
	provenMethod = "POST"
	provenURL    = "https://ropewalk.example/mcp"
)

// holder is somebody who has a key that tokens are bound to.
type holder struct {
	algorithm string
	jwk       map[string]any // public
	sign      func([]byte) []byte
}

// holders are one for each algorithm of proofs that adapters may know.
func (k *Keys) holders() []holder {
	plain := func(key map[string]any) map[string]any {
		maps.DeleteFunc(key, func(name string, _ any) bool { return name == "kid" || name == "use" || name == "alg" })
		return key
	}
	return []holder{
		{"ES256", plain(jwkOfCurve(k.curve)), es256(k.curve)},
		{"RS256", plain(jwkOf(k.forger, "", "")), rs256(k.forger)},
		{"EdDSA", plain(jwkOfEdwards(k.edwards)), func(in []byte) []byte { return ed25519.Sign(k.edwards, in) }},
	}
}

// thumbprint is that of RFC 7638: JSON has the members in the order of their names.
func (h holder) thumbprint() string {
	sum := sha256.Sum256(decode(encodeJSON(h.jwk)))
	return encode(sum[:])
}

// token is a good token of the provider that is bound to the holder's key.
func (h holder) token(p *Provider, changes ...map[string]any) string {
	return p.Token(append([]map[string]any{{"cnf": map[string]any{"jkt": h.thumbprint()}}}, changes...)...)
}

// proof is a DPoP proof of the holder for a token and the request above. The changes replace parts of the header
// and claims; nil takes one away.
func (h holder) proof(token string, head, claims map[string]any) string {
	sum := sha256.Sum256([]byte(token))
	header := changed(map[string]any{"typ": "dpop+jwt", "alg": h.algorithm, "jwk": h.jwk}, maps.Clone(head))
	body := map[string]any{"jti": rand.Text(), "htm": provenMethod, "htu": provenURL, "iat": time.Now().Unix(), "ath": encode(sum[:])}
	return compact(header, changed(body, maps.Clone(claims)), h.sign)
}

// bound verifies a token with a proof, with a certificate or with neither, in the request that proofs are for.
func (st *stage) bound(ctx context.Context, token, proof, certificate string) (auth.Identity, error) {
	req := auth.VerifyRequest{
		Token: token, Audiences: []string{"https://other.example", Audience},
		Method: provenMethod, URL: provenURL, ClientCertificateSHA256: certificate,
	}
	if proof != "" {
		req.Headers = map[string]string{"dpop": proof}
	}
	return st.adapter.Verify(ctx, req)
}

// certificates are the thumbprints of two certificates.
func certificates() (own, other string) {
	one, two := sha256.Sum256([]byte("the certificate of the holder")), sha256.Sum256([]byte("another certificate"))
	return encode(one[:]), encode(two[:])
}

// bearsCertificate verifies a token that is bound to a certificate, from it.
func (st *stage) bearsCertificate(ctx context.Context) error {
	own, _ := certificates()
	_, err := st.bound(ctx, st.provider.Token(map[string]any{"cnf": map[string]any{"x5t#S256": own}}), "", own)
	return err
}

// holder is one whose proofs the adapter accepts.
func (st *stage) holder(ctx context.Context) (holder, error) {
	var errs []error
	for _, h := range st.provider.keys.holders() {
		token := h.token(st.provider)
		id, err := st.bound(ctx, token, h.proof(token, nil, nil), "")
		if err == nil && id.Subject != "user_alice" {
			return holder{}, fmt.Errorf("a bound token of user_alice was answered with the subject %q", id.Subject)
		}
		if err == nil {
			return h, nil
		}
		errs = append(errs, fmt.Errorf("signed with %s: %w", h.algorithm, err))
	}
	return holder{}, errors.Join(errs...)
}

func acceptsProofs(ctx context.Context, st *stage) error {
	_, dpop := st.holder(ctx)
	if dpop == nil {
		return nil
	}
	if certificate := st.bearsCertificate(ctx); certificate != nil {
		return fmt.Errorf("a good token that is bound to a key was accepted neither with a DPoP proof of that key (%w) nor, bound to a certificate (x5t#S256), in a request with it (%w)", dpop, certificate)
	}
	return nil
}

// proving is a check of an adapter that accepts DPoP proofs.
func proving(run func(context.Context, *stage, holder) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		h, err := st.holder(ctx)
		if err != nil {
			return kit.Skip("the adapter accepts no DPoP proof of ES256, RS256 or EdDSA")
		}
		return run(ctx, st, h)
	}
}

func proofIsGoodOnce(ctx context.Context, st *stage, h holder) error {
	token := h.token(st.provider)
	proof := h.proof(token, nil, nil)
	if _, err := st.bound(ctx, token, proof, ""); err != nil {
		return fmt.Errorf("a good proof was not accepted: %w", err)
	}
	id, err := st.bound(ctx, token, proof, "")
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a DPoP proof that came a second time %w", err)
	}
	return nil
}

// rewrittenProofs are a proof whose signature somebody without the key has written in another way.
func rewrittenProofs(ctx context.Context, st *stage, h holder) error {
	token := h.token(st.provider)
	proof := h.proof(token, nil, nil)
	if _, err := st.bound(ctx, token, proof, ""); err != nil {
		return fmt.Errorf("a good proof was not accepted: %w", err)
	}
	for what, other := range rewritten(h, proof) {
		id, err := st.bound(ctx, token, other, "")
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a DPoP proof that came a second time, %s, %w", what, err)
		}
	}
	return nil
}

// rewritten is proof with the same claims and another signature, which the key's holder need not make.
func rewritten(h holder, proof string) map[string]string {
	at := strings.LastIndexByte(proof, '.') + 1
	signed, signature := proof[:at], proof[at:]
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, signature[len(signature)-1])
	all := map[string]string{
		"with padding": proof + "==", "with other spare bits at its end": signed + signature[:len(signature)-1] + alphabet[last|1:][:1],
	}
	if h.algorithm == "ES256" { // with s, n-s is good, too
		raw := decode(signature)
		negative := new(big.Int).Sub(elliptic.P256().Params().N, new(big.Int).SetBytes(raw[32:]))
		all["with the other root of its signature"] = signed + encode(append(raw[:32:32], negative.FillBytes(make([]byte, 32))...))
	}
	return all
}

func remembersProofs(ctx context.Context, st *stage, h holder) error {
	const others = 1100
	token := h.token(st.provider)
	first := h.proof(token, nil, nil)
	if _, err := st.bound(ctx, token, first, ""); err != nil {
		return fmt.Errorf("a good proof was not accepted: %w", err)
	}
	for range others {
		if _, err := st.bound(ctx, token, h.proof(token, nil, nil), ""); err != nil {
			return fmt.Errorf("a good proof, one of many for the same token, was not accepted: %w", err)
		}
	}
	id, err := st.bound(ctx, token, first, "")
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a DPoP proof that came again after %d others %w", others, err)
	}
	return nil
}

func oneOfProofsAtOnce(ctx context.Context, st *stage, h holder) error {
	const calls = 16
	for range 4 {
		token := h.token(st.provider)
		proof := h.proof(token, nil, nil)
		accepted, other := 0, error(nil)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				_, err := st.bound(ctx, token, proof, "")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted++
				case !errors.Is(err, plugins.ErrUnauthenticated):
					other = err
				}
			})
		}
		wg.Wait()
		if other != nil {
			return fmt.Errorf("one of %d calls with one proof was answered with %w; it must be refused as unauthenticated", calls, other)
		}
		if accepted != 1 {
			return fmt.Errorf("of %d calls at once with one DPoP proof, %d were accepted; it is good once", calls, accepted)
		}
	}
	return nil
}

func proofsAtOnce(ctx context.Context, st *stage, h holder) error {
	errs := make([]error, 24)
	var wg sync.WaitGroup
	for i := range errs {
		subject := fmt.Sprintf("user_%d", i%5)
		token := h.token(st.provider, map[string]any{"sub": subject})
		proof := h.proof(token, nil, nil)
		wg.Go(func() {
			id, err := st.bound(ctx, token, proof, "")
			if err == nil && id.Subject != subject {
				err = fmt.Errorf("was answered with the subject %q, not %q", id.Subject, subject)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("of %d calls at once, each with a proof of its own, not all were accepted: %w", len(errs), err)
	}
	return nil
}

func proofSavesNothing(ctx context.Context, st *stage, h holder) error {
	p := st.provider
	cnf := map[string]any{"cnf": map[string]any{"jkt": h.thumbprint()}}
	_, kid := p.key()
	for what, token := range map[string]string{
		"signed by somebody else":        compact(header(kid), p.claims([]map[string]any{cnf}), rs256(p.keys.second)),
		"that has expired":               h.token(p, map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()}),
		"for another audience":           h.token(p, map[string]any{"aud": "https://elsewhere.example"}),
		"of another issuer":              h.token(p, map[string]any{"iss": "https://id.example.com"}),
		"that is the holder's own":       compact(map[string]any{"typ": "JWT", "alg": h.algorithm, "jwk": h.jwk}, p.claims([]map[string]any{cnf}), h.sign),
		"without a subject":              h.token(p, map[string]any{"sub": nil}),
		"that is good from an hour on":   h.token(p, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"that nobody signed (alg: none)": compact(map[string]any{"typ": "JWT", "alg": "none"}, p.claims([]map[string]any{cnf}), func([]byte) []byte { return nil }),
	} {
		id, err := st.bound(ctx, token, h.proof(token, nil, nil), "")
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a token %s, with a good DPoP proof, %w", what, err)
		}
	}
	return nil
}

func needsProofEachTime(ctx context.Context, st *stage, h holder) error {
	token := h.token(st.provider)
	if _, err := st.bound(ctx, token, h.proof(token, nil, nil), ""); err != nil {
		return fmt.Errorf("a good proof was not accepted: %w", err)
	}
	id, err := st.bound(ctx, token, "", "")
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a bound token without a proof, after one was accepted, %w", err)
	}
	if id, err = st.verify(ctx, token); err == nil {
		return fmt.Errorf("a bound token of a request about which nothing is known was accepted as %q's", id.Subject)
	}
	return nil
}

func ownCertificateAlone(ctx context.Context, st *stage) error {
	if err := st.bearsCertificate(ctx); err != nil {
		return kit.Skip("the adapter accepts no token that is bound to a certificate")
	}
	own, other := certificates()
	token := st.provider.Token(map[string]any{"cnf": map[string]any{"x5t#S256": own}})
	for what, shown := range map[string]string{
		"no certificate": "", "another certificate": other, "the thumbprint in small letters": strings.ToLower(own),
		"the start of the thumbprint": own[:len(own)-1], "more than the thumbprint": own + "A", "the thumbprint with padding": own + "=",
		"the thumbprint and white space": own + " ",
	} {
		id, err := st.bound(ctx, token, "", shown)
		if err := mustRefuse(id, err); err != nil {
			return fmt.Errorf("a token that is bound to a certificate, in a request with %s, %w", what, err)
		}
	}
	return nil
}

func kindsDiffer(ctx context.Context, st *stage, h holder) error {
	own, _ := certificates()
	toCertificate := st.provider.Token(map[string]any{"cnf": map[string]any{"x5t#S256": own}})
	id, err := st.bound(ctx, toCertificate, h.proof(toCertificate, nil, nil), "")
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a token that is bound to a certificate, with a DPoP proof of any key, %w", err)
	}
	id, err = st.bound(ctx, h.token(st.provider), "", h.thumbprint())
	if err := mustRefuse(id, err); err != nil {
		return fmt.Errorf("a token that is bound to a DPoP key, in a request with a certificate of the same thumbprint, %w", err)
	}
	return nil
}

func unknownBindings(ctx context.Context, st *stage, h holder) error {
	own, _ := certificates()
	for what, cnf := range map[string]any{
		"to a key by its id":                 map[string]any{"kid": "a-key"},
		"to an unknown kind of proof":        map[string]any{"https://example.com/proof": h.thumbprint()},
		"to a thumbprint that is a number":   map[string]any{"jkt": 7},
		"to a list of thumbprints":           map[string]any{"jkt": []string{h.thumbprint()}},
		"to an empty thumbprint":             map[string]any{"jkt": ""},
		"to an empty certificate":            map[string]any{"x5t#S256": ""},
		"by a text in place of an object":    h.thumbprint(),
		"to the start of a thumbprint":       map[string]any{"jkt": h.thumbprint()[:20]},
		"to the thumbprint in other letters": map[string]any{"jkt": swapCase(h.thumbprint())},
	} {
		token := st.provider.Token(map[string]any{"cnf": cnf})
		for _, certificate := range []string{"", own} {
			id, err := st.bound(ctx, token, h.proof(token, nil, nil), certificate)
			if err := mustRefuse(id, err); err != nil {
				return fmt.Errorf("a token that is bound %s %w", what, err)
			}
		}
	}
	return nil
}

// swapCase is a text that differs from s in the case of its letters alone.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func repeatsNoBoundToken(ctx context.Context, st *stage, h holder) error {
	token := h.token(st.provider)
	for _, proof := range []string{"", "junk", h.proof(token, nil, map[string]any{"htm": "GET"}), h.proof("another", nil, nil)} {
		if _, err := st.bound(ctx, token, proof, ""); err != nil && strings.Contains(err.Error(), token) {
			return errors.New("the error about a proof repeats the token")
		}
	}
	return nil
}

// private is the key of a holder with its private part, which must not be in a proof.
func (k *Keys) private(h holder) map[string]any {
	key := maps.Clone(h.jwk)
	switch h.algorithm {
	case "ES256":
		key["d"] = encode(scalar(k.curve))
	case "EdDSA":
		key["d"] = encode(k.edwards.Seed())
	default:
		key["d"] = encode(exponent(k.forger))
	}
	return key
}

func scalar(key *ecdsa.PrivateKey) []byte { return must(key.Bytes()) }

func exponent(key *rsa.PrivateKey) []byte { return key.D.Bytes() }
