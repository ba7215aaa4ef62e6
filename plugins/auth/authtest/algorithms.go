package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// forgedAlgorithms say everything right, under another algorithm than RS256 or with a header that
// asks for other rules.
func (p *Provider) forgedAlgorithms() []draft {
	key, kid := p.key()
	build := func(changes map[string]any, sign func([]byte) []byte) func() string {
		return func() string { return compact(changed(header(kid), changes), p.Claims(), sign) }
	}
	payload := func(claims any) func() string {
		return func() string { return compact(header(kid), claims, rs256(key)) }
	}
	alg := func(name any) map[string]any { return map[string]any{"alg": name} }
	der := must(x509.MarshalPKIXPublicKey(&key.PublicKey))
	inPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	algorithms := map[string]func() string{
		"none":                             build(alg("none"), func([]byte) []byte { return nil }),
		"none with a signature":            build(alg("none"), rs256(key)),
		"None in capitals":                 build(alg("NONE"), rs256(key)),
		"HS256 with the public key in PEM": build(alg("HS256"), hs256(inPEM)),
		"HS256 with the public key in DER": build(alg("HS256"), hs256(der)),
		"HS256 with the modulus":           build(alg("HS256"), hs256(key.N.Bytes())),
		"HS256 with nothing":               build(alg("HS256"), hs256(nil)),
		"RS384 with the provider's key":    build(alg("RS384"), rsaWith(key, crypto.SHA384)),
		"RS512 with the provider's key":    build(alg("RS512"), rsaWith(key, crypto.SHA512)),
		"PS256 with the provider's key":    build(alg("PS256"), pss(key)),
		"ES256 with another key":           build(alg("ES256"), es256(p.keys.curve)),
		"EdDSA with another key":           build(alg("EdDSA"), func(in []byte) []byte { return ed25519.Sign(p.keys.edwards, in) }),
		"ES256 with another key under the provider's EC key id": func() string {
			return compact(changed(header("ES256"), map[string]any{"alg": "ES256"}), p.Claims(), es256(p.keys.curve))
		},
		"EdDSA with another key under the provider's Ed25519 key id": func() string {
			return compact(changed(header("EdDSA"), map[string]any{"alg": "EdDSA"}), p.Claims(), func(in []byte) []byte { return ed25519.Sign(p.keys.edwards, in) })
		},
		"rs256 in small letters":                 build(alg("rs256"), rs256(key)),
		"a list of algorithms":                   build(alg([]string{"RS256"}), rs256(key)),
		"no algorithm":                           build(alg(nil), rs256(key)),
		"an algorithm in another case of letter": build(map[string]any{"alg": nil, "Alg": "RS256"}, rs256(key)),
	}
	form := map[string]func() string{
		"critical headers":         build(map[string]any{"crit": []string{"exp"}, "exp": 1}, rs256(key)),
		"a payload out of base64":  build(map[string]any{"crit": []string{"b64"}, "b64": false}, rs256(key)),
		"a logout token":           build(map[string]any{"typ": "logout+jwt"}, rs256(key)),
		"a proof of possession":    build(map[string]any{"typ": "dpop+jwt"}, rs256(key)),
		"a payload that is a list": payload([]any{p.Claims()}),
		"a payload that is text":   payload("user_alice"),
		"a payload that is null":   payload(nil),
	}
	return append(sorted(Algorithm, algorithms), sorted(Form, form)...)
}

func hs256(secret []byte) func([]byte) []byte {
	return func(input []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		_, _ = mac.Write(input)
		return mac.Sum(nil)
	}
}

func rsaWith(key *rsa.PrivateKey, hash crypto.Hash) func([]byte) []byte {
	return func(input []byte) []byte {
		h := hash.New()
		_, _ = h.Write(input)
		return must(rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil)))
	}
}

func pss(key *rsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		digest := sha256.Sum256(input)
		return must(rsa.SignPSS(rand.Reader, key, crypto.SHA256, digest[:], nil))
	}
}

func es256(key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		digest := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			panic(fmt.Sprintf("sign with P-256: %v", err))
		}
		signature := [64]byte{}
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature[:]
	}
}

// must is for signing with good keys, which does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("make a forged token: %v", err))
	}
	return value
}
