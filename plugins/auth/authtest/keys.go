package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha512" // for RS384 and RS512
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
)

// Keys are the keys that the providers and forgers of one run sign with. Generating them takes about a second, so one
// set serves many providers.
type Keys struct {
	signing            [3]*rsa.PrivateKey // the provider's, used one after another
	encryption, forger *rsa.PrivateKey    // encryption is published, but not for signatures; forger belongs to nobody
	curve, otherCurve  *ecdsa.PrivateKey  // curve is the provider's; otherCurve belongs to nobody
	edwards, otherEd   ed25519.PrivateKey

	mu   sync.Mutex
	rows map[string][]row // chosen earlier, because they are the same for every provider
}

// chosen returns the rows that choose returned on the first call with this name. The name must stand for the arguments
// that choose depends on.
func (k *Keys) chosen(name string, choose func() []row) []row {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.rows[name]; !known {
		if k.rows == nil {
			k.rows = map[string][]row{}
		}
		k.rows[name] = choose()
	}
	return slices.Clone(k.rows[name])
}

// NewKeys generates a set of keys.
func NewKeys() (*Keys, error) {
	k := &Keys{}
	var errs [9]error
	var making sync.WaitGroup
	for i, key := range []**rsa.PrivateKey{&k.signing[0], &k.signing[1], &k.signing[2], &k.encryption, &k.forger} {
		making.Go(func() { *key, errs[i] = rsa.GenerateKey(rand.Reader, 2048) })
	}
	making.Wait()
	k.curve, errs[5] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.otherCurve, errs[6] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, k.edwards, errs[7] = ed25519.GenerateKey(rand.Reader)
	_, k.otherEd, errs[8] = ed25519.GenerateKey(rand.Reader)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	return k, nil
}

// signer is a key with its key id.
type signer struct {
	kid, use string // a key without a use is for everything, including signatures
	key      crypto.Signer
}

// signs reports whether the key is meant for signatures.
func (s *signer) signs() bool { return s.use != "enc" }

// algorithm returns the algorithm that the key signs with by default.
func (s *signer) algorithm() string {
	switch s.key.(type) {
	case *ecdsa.PrivateKey:
		return "ES256"
	case ed25519.PrivateKey:
		return "EdDSA"
	}
	return "RS256"
}

// jwk returns the public key as a JWK. Without a key id it has only the members that an RFC 7638 thumbprint covers.
func (s *signer) jwk() map[string]any {
	var key map[string]any
	switch public := s.key.Public().(type) {
	case *rsa.PublicKey:
		key = map[string]any{"kty": "RSA", "n": encode(public.N.Bytes()), "e": encode(big.NewInt(int64(public.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		key = map[string]any{"kty": "EC", "crv": "P-256", "x": encode(must(point, err)[1:33]), "y": encode(point[33:])}
	case ed25519.PublicKey:
		key = map[string]any{"kty": "OKP", "crv": "Ed25519", "x": encode(public)}
	}
	if s.kid != "" {
		key["kid"] = s.kid
	}
	if s.kid != "" && s.use != "" {
		key["use"], key["x5t"], key["x_note"] = s.use, encode(make([]byte, 20)), []any{nil}
	}
	if s.kid != "" && s.use == "sig" {
		key["alg"] = s.algorithm()
	}
	return key
}

// thumbprint returns the RFC 7638 thumbprint. It relies on json.Marshal, which sorts the members by name.
func (s *signer) thumbprint() string {
	bare := signer{key: s.key}
	return encode(hashed(crypto.SHA256, must(json.Marshal(bare.jwk()))))
}

// certificate returns a certificate that the forger has issued to itself.
func (k *Keys) certificate() []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	return must(x509.CreateCertificate(rand.Reader, template, template, k.forger.Public(), k.forger))
}

// forgedKeys is the key set of the forger.
func (p *Provider) forgedKeys() map[string]any {
	return map[string]any{"keys": []any{(&signer{"forger", "sig", p.keys.forger}).jwk()}}
}

// hashOf returns the hash that the digits in an algorithm's name stand for, or 0.
func hashOf(algorithm string) crypto.Hash {
	if len(algorithm) < 5 {
		return 0
	}
	return map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[algorithm[2:]]
}

func hashed(hash crypto.Hash, data []byte) []byte {
	h := hash.New()
	_, _ = h.Write(data)
	return h.Sum(nil)
}

// sign signs input. An RSA key uses the padding and hash of the algorithm; EC and Ed25519 keys have only one algorithm
// and ignore the argument. A key that cannot sign returns nil.
func (s *signer) sign(algorithm string, input []byte) []byte {
	hash := hashOf(algorithm)
	switch key := s.key.(type) {
	case *rsa.PrivateKey:
		if strings.HasPrefix(algorithm, "PS") {
			return must(rsa.SignPSS(rand.Reader, key, hash, hashed(hash, input), nil))
		}
		return must(rsa.SignPKCS1v15(rand.Reader, key, hash, hashed(hash, input)))
	case *ecdsa.PrivateKey:
		r, t, err := ecdsa.Sign(rand.Reader, key, hashed(crypto.SHA256, input))
		raw := must(make([]byte, 64), err)
		r.FillBytes(raw[:32])
		t.FillBytes(raw[32:])
		return raw
	case ed25519.PrivateKey:
		return ed25519.Sign(key, input)
	}
	return nil
}

// verifies reports whether the public half of the key accepts the signature as one made with the algorithm.
func (s *signer) verifies(algorithm string, j *jws) bool {
	hash := hashOf(algorithm)
	switch public := s.key.Public().(type) {
	case *rsa.PublicKey:
		switch {
		case hash == 0:
			return false
		case strings.HasPrefix(algorithm, "PS"):
			return rsa.VerifyPSS(public, hash, hashed(hash, j.input), j.sig, nil) == nil
		}
		return strings.HasPrefix(algorithm, "RS") && rsa.VerifyPKCS1v15(public, hash, hashed(hash, j.input), j.sig) == nil
	case *ecdsa.PublicKey:
		return algorithm == "ES256" && len(j.sig) == 64 &&
			ecdsa.Verify(public, hashed(hash, j.input), new(big.Int).SetBytes(j.sig[:32]), new(big.Int).SetBytes(j.sig[32:]))
	case ed25519.PublicKey:
		return algorithm == "EdDSA" && ed25519.Verify(public, j.input, j.sig)
	}
	return false
}

func hmacWith(hash crypto.Hash, secret, input []byte) []byte {
	mac := hmac.New(hash.New, secret)
	_, _ = mac.Write(input)
	return mac.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decode(s string) []byte { return must(base64.RawURLEncoding.DecodeString(s)) }

// compact returns a JWS in compact form.
func compact(header, claims any, sign func(input []byte) []byte) string {
	input := encode(must(json.Marshal(header))) + "." + encode(must(json.Marshal(claims)))
	return input + "." + encode(sign([]byte(input)))
}

// changed returns a copy of all with the changes applied. A nil value removes the member.
func changed(all map[string]any, changes ...map[string]any) map[string]any {
	all = maps.Clone(all)
	for _, change := range changes {
		maps.Copy(all, change)
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// must returns value. It is for the kit's own values, for which err is always nil.
func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("the kit has a bug: %v", err))
	}
	return value
}

func last(all []*signer) *signer { return all[len(all)-1] }

// without returns a copy of all without one.
func without(all []*signer, one *signer) []*signer {
	return slices.DeleteFunc(slices.Clone(all), func(s *signer) bool { return s == one })
}
