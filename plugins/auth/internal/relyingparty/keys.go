package relyingparty

import (
	"context"
	"crypto/rsa"
	"fmt"
	"slices"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
)

const (
	keysLimit  = 512 << 10
	keysFresh  = 4 * time.Minute // older keys are refreshed in the background
	keysOld    = 5 * time.Minute // older keys are refreshed before use, so this limits how long a removed key is accepted
	keysWait   = time.Second     // how long to wait for that refresh
	keysKeep   = 24 * time.Hour  // how long keys are used while the provider is unavailable
	minKeyBits = 2048
	maxKeys    = 100
)

// keySet holds the provider's usable keys by key id; several may share one.
type keySet map[string][]jwk.Key

// keys finds the provider's signing keys.
type keys struct{ set cache[keySet] }

// find returns the keys with that id. If kid is empty, it returns the only key, if there is just one. Every
// lookup of an unknown id causes a rate-limited refresh, because the provider may publish its key a moment
// later. find rejects an id only if it is missing from a key set fetched within renewEvery.
func (k *keys) find(ctx context.Context, kid string) ([]jwk.Key, error) {
	set, age, err := k.set.dated(ctx)
	if err != nil {
		return nil, err
	}
	if age >= keysOld {
		set = k.renewed(ctx, set)
	}
	if found := set.lookup(kid); found != nil {
		return found, nil
	}
	if set, err = k.set.renew(ctx); err != nil {
		return nil, err
	}
	if found := set.lookup(kid); found != nil {
		return found, nil
	}
	return nil, refuse("the provider has no key %q", clip(kid))
}

// renewed returns the provider's current key set, or known if the current one cannot be fetched within keysWait.
func (k *keys) renewed(ctx context.Context, known keySet) keySet {
	ctx, cancel := context.WithTimeout(ctx, keysWait)
	defer cancel()
	if set, err := k.set.renew(ctx); err == nil {
		return set
	}
	return known
}

func (s keySet) lookup(kid string) []jwk.Key {
	if kid != "" {
		return s[kid]
	}
	if len(s) != 1 {
		return nil
	}
	for _, only := range s {
		if len(only) == 1 {
			return only
		}
	}
	return nil
}

// parseKeys keeps the keys for the given algorithms and pins each key's algorithm: what a token says about its
// algorithm is never trusted. A set without any such key is an error, so that a broken response does not replace valid
// keys.
func parseKeys(body []byte, algorithms []string) (keySet, error) {
	all, err := jwk.Parse(body, jwk.WithIgnoreParseError(true))
	if err != nil {
		return nil, fmt.Errorf("not a key set: %w", err)
	}
	if all.Len() > maxKeys {
		return nil, fmt.Errorf("a set of %d keys is larger than %d", all.Len(), maxKeys)
	}
	set := keySet{}
	for i := range all.Len() {
		key, ok := all.Key(i)
		if !ok {
			continue
		}
		algorithm, ok := signsWith(key)
		if !ok || !slices.Contains(algorithms, algorithm.String()) {
			continue
		}
		public, err := key.PublicKey()
		if err != nil {
			continue
		}
		if err := public.Set(jwk.AlgorithmKey, algorithm); err != nil {
			return nil, err
		}
		set[public.KeyID()] = append(set[public.KeyID()], public)
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("the key set contains no key for signatures with %q (RSA keys need 2048 bits or more)", algorithms)
	}
	return set, nil
}

// signsWith returns the only algorithm whose signatures a key may verify.
func signsWith(key jwk.Key) (jwa.SignatureAlgorithm, bool) {
	public, err := key.PublicKey()
	if err != nil || !forSignatures(key) {
		return "", false
	}
	var algorithm jwa.SignatureAlgorithm
	switch public := public.(type) {
	case jwk.RSAPublicKey:
		var raw rsa.PublicKey
		if public.Raw(&raw) != nil || raw.N.BitLen() < minKeyBits || raw.E < 3 {
			return "", false
		}
		algorithm = jwa.RS256
	case jwk.ECDSAPublicKey:
		if public.Crv() != jwa.P256 {
			return "", false
		}
		algorithm = jwa.ES256
	case jwk.OKPPublicKey:
		if public.Crv() != jwa.Ed25519 {
			return "", false
		}
		algorithm = jwa.EdDSA
	default:
		return "", false
	}
	said := key.Algorithm().String()
	return algorithm, said == "" || said == algorithm.String()
}

// forSignatures reports whether the key set allows using the key for signatures.
func forSignatures(key jwk.Key) bool {
	if use := key.KeyUsage(); use != "" && use != string(jwk.ForSignature) {
		return false
	}
	ops := key.KeyOps()
	return len(ops) == 0 || hasVerify(ops)
}

func hasVerify(ops jwk.KeyOperationList) bool {
	for _, op := range ops {
		if op == jwk.KeyOpVerify {
			return true
		}
	}
	return false
}

// clip truncates untrusted text for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
