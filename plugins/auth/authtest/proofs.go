package authtest

import (
	"context"
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// The request that proofs are made for.
const (
	provenMethod = "POST"
	provenURL    = "https://ropewalk.example/mcp"
)

// judgeBinding checks a token that is bound to a key (RFC 7800): the request must prove that the sender has the key.
func (w *world) judgeBinding(d *demand, claims map[string]any, req auth.VerifyRequest, from, to time.Time) {
	cnf, bound := claims["cnf"]
	if !bound {
		return
	}
	all, _ := cnf.(map[string]any)
	jkt, _ := all["jkt"].(string)
	certificate, _ := all["x5t#S256"].(string)
	switch {
	case !w.binds || len(all) != 1 || jkt == "" && certificate == "":
		d.refuse(Form, "it is bound to a key, and the request does not prove possession of it")
	case certificate != "":
		if certificate != req.ClientCertificateSHA256 {
			d.refuse(Form, "it is bound to a certificate other than that of the request")
		}
	default:
		if why := w.judgeProof(jkt, req, from, to); why != "" {
			d.refuse(Form, why)
		}
	}
	if d.clause == Form {
		d.sentence = sBound
	} else if d.clause == "" {
		d.sentence = sProof
	}
}

// judgeProof returns what is wrong with a DPoP proof (RFC 9449 section 4.3), or "".
func (w *world) judgeProof(jkt string, req auth.VerifyRequest, from, to time.Time) string {
	j := readJWS(req.Headers["dpop"])
	if j == nil {
		return "there is no DPoP proof that is a compact JWS"
	}
	text := func(name string) string { s, _ := j.claims[name].(string); return s }
	jwk, _ := j.header["jwk"].(map[string]any)
	alg, _ := j.header["alg"].(string)
	iat, known := seconds(j.claims["iat"])
	_, used := w.proofs.Load(text("jti"))
	switch key := w.keys.holding(jwk); {
	case j.header["typ"] != "dpop+jwt":
		return "its type is not that of a DPoP proof"
	case key == nil || !key.verifies(alg, j):
		return "the proof is not signed with its key"
	case key.thumbprint() != jkt:
		return "the proof is for another key"
	case j.header["crit"] != nil:
		return "the proof has critical headers"
	case text("htm") != req.Method:
		return "the proof is for another method"
	case text("htu") != req.URL:
		return "the proof is for another URL"
	case text("ath") != encode(hashed(crypto.SHA256, []byte(req.Token))):
		return "the proof is for another token"
	case text("jti") == "" || used:
		return "the proof was used before"
	case !known || iat.Before(from.Add(-time.Hour)) || iat.After(to.Add(time.Hour)):
		return "the proof was issued on another day"
	}
	return ""
}

// holder has a key that tokens are bound to.
type holder struct{ signer }

// holders returns a holder for each algorithm that signs proofs: ES256, RS256 and EdDSA.
func (k *Keys) holders() []holder {
	return []holder{{signer{key: k.otherCurve}}, {signer{key: k.forger}}, {signer{key: k.otherEd}}}
}

// holding returns the holder with this public key. It returns nil if there is none, or if jwk has additional members.
func (k *Keys) holding(jwk map[string]any) *signer {
	for _, h := range k.holders() {
		if reflect.DeepEqual(readObject(must(json.Marshal(h.jwk()))), jwk) {
			return &h.signer
		}
	}
	return nil
}

// token returns a valid token that is bound to the holder's key.
func (h holder) token(p *Provider, changes ...map[string]any) string {
	return p.Token(append([]map[string]any{{"cnf": map[string]any{"jkt": h.thumbprint()}}}, changes...)...)
}

// proofOf returns a draft of a proof for a token and the request above.
func (h holder) proofOf(token string) *draft {
	return &draft{
		header: map[string]any{"typ": "dpop+jwt", "alg": h.algorithm(), "jwk": h.jwk()},
		claims: map[string]any{"jti": rand.Text(), "htm": provenMethod, "htu": provenURL, "iat": time.Now().Unix(), "ath": encode(hashed(crypto.SHA256, []byte(token)))},
		by:     &h.signer, spell: func(text string) string { return text },
	}
}

// proofTable returns the properties that proofs are made of.
func (h holder) proofTable(p *Provider, other signer, token string) []property {
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	key := property{name: "key"}
	key.add("its own key", func(*draft) {})
	key.add("another key", func(d *draft) { d.by, d.header["jwk"], d.header["alg"] = &other, other.jwk(), other.algorithm() })
	key.add("another key's signature", func(d *draft) { d.by, d.header["alg"] = &other, other.algorithm() })
	key.add("another key with its own thumbprint", func(d *draft) {
		d.by, d.header["jwk"], d.header["alg"], d.header["kid"], d.header["jkt"] = &other, other.jwk(), other.algorithm(), h.thumbprint(), h.thumbprint()
	})
	key.add("no key", func(d *draft) { d.header["jwk"] = nil })
	key.add("a private key", func(d *draft) { d.header["jwk"] = changed(h.jwk(), map[string]any{"d": encode(make([]byte, 32))}) })
	key.add("the algorithm none", func(d *draft) { d.header["alg"], d.seal = "none", func([]byte) []byte { return nil } })
	key.add("HS256 with the key", func(d *draft) {
		d.header["alg"], d.seal = "HS256", func(in []byte) []byte { return hmacWith(crypto.SHA256, must(json.Marshal(h.jwk())), in) }
	})
	key.add("a signature of zeros", func(d *draft) { d.seal = func([]byte) []byte { return make([]byte, 64) } })
	key.add("the signature of another proof", func(d *draft) { d.seal = func([]byte) []byte { return readJWS(h.proofOf(token).token()).sig } })
	url := claimed("htu", append([]any{
		provenURL, "https://ropewalk.example/v1/tools", provenURL + "/more", "https://ropewalk.example/", "https://elsewhere.example/mcp", "https://ropewalk.example:8443/mcp", "http://ropewalk.example/mcp", "https://ropewalk.example/MCP",
	}, nearly(provenURL)[1:9]...)...)
	ath := claimed("ath", encode(hashed(crypto.SHA256, []byte(token))), nil, "", token, encode(hashed(crypto.SHA256, []byte(h.token(p, map[string]any{"jti": "x"})))), 7)
	return []property{
		key, headed("typ", "dpop+jwt", "JWT", nil, "", "at+jwt"), claimed("htm", provenMethod, "GET", "post", "", nil, provenMethod+"S", 7), url, ath,
		claimed("iat", at(0), at(-2*time.Second), nil, at(-24*time.Hour), at(24*time.Hour), "now"), spellings(),
	}
}

// checkProofs tries DPoP proofs that cover pairs of property values, reused proofs, and client certificates.
func checkProofs(ctx context.Context, s Subject) {
	switch {
	case !s.Binds:
		kit.Must(kit.DoesNotApply("the adapter does not declare the capability verify.request"))
	case s.Keys == nil:
		kit.Must(kit.CannotJudge("proofs are tried only with adapters for OpenID providers: put ${issuer} in the settings"))
	}
	s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) {
		holders := s.Keys.holders()
		certificates := kit.Catch(func() { st.certificates(ctx) })
		for i, h := range holders {
			token := h.token(st.provider)
			if _, err := st.adapter.Verify(ctx, st.proven(token, h.proofOf(token).token(), "")); err != nil {
				continue // the adapter does not support this algorithm
			}
			st.provesTable(ctx, h, holders[(i+1)%3].signer)
			st.reuseProofs(ctx, h)
			kit.Must(certificates)
			return
		}
		if certificates != nil {
			kit.Reject(certificates.Error(), "OK with a DPoP proof signed with ES256, RS256 or EdDSA, or with the token's certificate", sBound, "verify a bound token with proofs")
		}
	})
}

func (st *stage) proven(token, proof, certificate string) auth.VerifyRequest {
	req := auth.VerifyRequest{Token: token, Audiences: []string{st.provider.Audience}, Method: provenMethod, URL: provenURL, ClientCertificateSHA256: certificate}
	if proof != "" {
		req.Headers = map[string]string{"dpop": proof}
	}
	return req
}

func (st *stage) provesTable(ctx context.Context, h holder, other signer) {
	token := h.token(st.provider)
	table := h.proofTable(st.provider, other, token)
	rows := st.rows("proofs with "+h.algorithm(), 6, table, func(r row) demand {
		now := time.Now()
		return st.world.verify(st.proven(token, r.change(h.proofOf(token), table).token(), ""), now, now)
	})
	st.trial.Cover("%d DPoP proofs with %d properties, signed with %s", len(rows), len(table), h.algorithm())
	kit.AtOnce(ctx, len(rows), workers, func(ctx context.Context, i int) {
		d := rows[i].change(h.proofOf(token), table)
		st.verify(ctx, st.proven(token, d.token(), ""), "verify a bound token with a DPoP proof: default values"+d.name)
	})
}

// reuseProofs uses valid proofs once, and then again: unchanged or re-encoded, immediately, after many others,
// and concurrently.
func (st *stage) reuseProofs(ctx context.Context, h holder) {
	p := st.provider
	use := func(ctx context.Context, token, proof, step string) {
		st.verify(ctx, st.proven(token, proof, ""), step)
		if j := readJWS(proof); j != nil {
			st.world.proofs.Store(j.claims["jti"], true)
		}
	}
	token := h.token(p)
	first, used := h.proofOf(token).token(), time.Now()
	use(ctx, token, first, "verify a bound token with a valid proof")
	again := map[string]string{"the same proof again": first, "the proof again, with padding": first + "=", "no proof, after a valid one": ""}
	if h.algorithm() == "ES256" { // if s is valid in an ECDSA signature, so is n-s
		at := strings.LastIndexByte(first, '.') + 1
		raw := decode(first[at:])
		negative := new(big.Int).Sub(elliptic.P256().Params().N, new(big.Int).SetBytes(raw[32:]))
		again["the proof again, with the other root of its signature"] = first[:at] + encode(append(raw[:32:32], negative.FillBytes(make([]byte, 32))...))
	}
	for what, proof := range sortedPairs(again) {
		st.verify(ctx, st.proven(token, proof, ""), "verify a bound token with a valid proof", "verify it with "+what)
	}
	others := max(60, st.trial.Count(1100))
	kit.AtOnce(ctx, others, workers, func(ctx context.Context, i int) {
		mine := h.token(p, map[string]any{"sub": fmt.Sprint("user_", i%7)})
		proof := h.proofOf(mine).token()
		use(ctx, mine, proof, "verify different bound tokens with valid proofs, many at once")
	})
	st.verify(ctx, st.proven(token, first, ""), "verify a bound token with a valid proof", fmt.Sprintf("verify %d others with other proofs", others), "verify the first with its proof again")
	kit.Must(kit.Pause(ctx, min(time.Duration(st.trial.Count(65))*time.Second, 5*time.Minute)-time.Since(used)))
	st.verify(ctx, st.proven(token, first, ""), "verify a bound token with a valid proof", fmt.Sprintf("verify it with its proof again, %s later", time.Since(used).Round(time.Second)))
	for round := range 4 {
		mine := h.token(p, map[string]any{"jti": fmt.Sprint(round)})
		proof := h.proofOf(mine).token()
		var mu sync.Mutex
		accepted := 0
		kit.AtOnce(ctx, workers, workers, func(ctx context.Context, _ int) {
			st.call(ctx, st.patience(), st.proven(mine, proof, ""), func(d *demand, _ time.Time) {
				d.unsure(accept|refuse, "one of the calls is the first", sProof)
				d.judge = func(auth.Identity) (string, string) {
					mu.Lock()
					defer mu.Unlock()
					if accepted++; accepted > 1 {
						return "UNAUTHENTICATED, because a concurrent call was accepted with this proof", sProof
					}
					return "", ""
				}
			}, fmt.Sprintf("verify a bound token with one valid proof, %d times at once", workers))
		})
		if accepted == 0 {
			kit.Reject("no acceptance", "OK for one of them", sProof, "verify a bound token with one valid proof many times at once")
		}
	}
}

// certificates tries tokens that are bound to a client certificate. It also ends the property if the adapter does not
// accept certificates.
func (st *stage) certificates(ctx context.Context) {
	own := encode(hashed(crypto.SHA256, []byte("the certificate of the holder")))
	other := encode(hashed(crypto.SHA256, []byte("another certificate")))
	token := st.provider.Token(map[string]any{"cnf": map[string]any{"x5t#S256": own}})
	if _, err := st.adapter.Verify(ctx, st.proven(token, "", own)); err != nil {
		kit.Must(fmt.Errorf("with its certificate: %w", err))
	}
	h := holder{signer{key: st.Keys.otherCurve}}
	requests := map[string]auth.VerifyRequest{"a DPoP proof in its place": st.proven(token, h.proofOf(token).token(), "")}
	for what, shown := range map[string]string{
		"no certificate": "", "another certificate": other, "the thumbprint in small letters": strings.ToLower(own), "the start of the thumbprint": own[:len(own)-1], "more than the thumbprint": own + "A", "the thumbprint with padding": own + "=", "white space": own + " ",
	} {
		requests[what] = st.proven(token, "", shown)
	}
	bound := h.token(st.provider)
	requests["the thumbprint of a DPoP key as certificate"] = st.proven(bound, "", h.thumbprint())
	for what, req := range sortedPairs(maps.Clone(requests)) {
		st.verify(ctx, req, "verify a token that is bound to a certificate, with "+what)
	}
}

// CheckProof checks the DPoP proof of a request for a token with this cnf claim, and returns the proof's jti.
// It does not check whether the proof was used before. Adapters in tests use it.
func (k *Keys) CheckProof(proof string, req auth.VerifyRequest, cnf map[string]any) (jti string, err error) {
	jkt, _ := cnf["jkt"].(string)
	w := world{keys: k, proofs: &sync.Map{}}
	j := readJWS(proof)
	if len(cnf) != 1 || jkt == "" || j == nil {
		return "", errors.New("there is no proof")
	}
	jti, _ = j.claims["jti"].(string)
	if why := w.judgeProof(jkt, req, time.Now(), time.Now()); why != "" {
		return jti, errors.New(why)
	}
	return jti, nil
}
