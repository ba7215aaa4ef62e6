package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
)

// Keys are the keys that providers and forgers of one run sign with. Making them takes a second,
// so one set serves many providers.
type Keys struct {
	first, second *rsa.PrivateKey // the provider's, before and after a rotation
	encryption    *rsa.PrivateKey // published by the provider, but not for signatures
	forger        *rsa.PrivateKey
	curve         *ecdsa.PrivateKey // nobody's, for forgeries
	edwards       ed25519.PrivateKey
	ownCurve      *ecdsa.PrivateKey // the provider's
	ownEdwards    ed25519.PrivateKey
}

// NewKeys makes a set of keys.
func NewKeys() (*Keys, error) {
	k := &Keys{}
	for _, key := range []**rsa.PrivateKey{&k.first, &k.second, &k.encryption, &k.forger} {
		made, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, fmt.Errorf("make an RSA key: %w", err)
		}
		*key = made
	}
	var err error
	if k.curve, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make an EC key: %w", err)
	}
	if _, k.edwards, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, fmt.Errorf("make an Ed25519 key: %w", err)
	}
	if k.ownCurve, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make an EC key: %w", err)
	}
	if _, k.ownEdwards, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, fmt.Errorf("make an Ed25519 key: %w", err)
	}
	return k, nil
}

// jwkOfCurve is the provider's key for ES256.
func jwkOfCurve(key *ecdsa.PrivateKey) map[string]any {
	x, y := make([]byte, 32), make([]byte, 32)
	key.X.FillBytes(x)
	key.Y.FillBytes(y)
	return map[string]any{"kty": "EC", "crv": "P-256", "kid": "ES256", "alg": "ES256", "use": "sig", "x": encode(x), "y": encode(y)}
}

// jwkOfEdwards is the provider's key for EdDSA.
func jwkOfEdwards(key ed25519.PrivateKey) map[string]any {
	public := must(key.Public().(ed25519.PublicKey), nil)
	return map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": "EdDSA", "alg": "EdDSA", "use": "sig", "x": encode(public)}
}

func jwkOf(key *rsa.PrivateKey, kid, use string) map[string]any {
	return map[string]any{
		"kty": "RSA", "kid": kid, "use": use,
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(s string) []byte { return must(base64.RawURLEncoding.DecodeString(s)) }

// encodeJSON panics on what cannot be JSON: the kit marshals its own values only.
func encodeJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return encode(raw)
}

// compact is a JWS in compact form.
func compact(header, claims any, sign func(input []byte) []byte) string {
	input := encodeJSON(header) + "." + encodeJSON(claims)
	return input + "." + encode(sign([]byte(input)))
}

func rs256(key *rsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		digest := sha256.Sum256(input)
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
		if err != nil {
			panic(fmt.Sprintf("sign with a key of 2048 bits: %v", err))
		}
		return signature
	}
}
