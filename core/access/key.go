package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// fingerprint is the SHA-256 of a credential. It is compared, looked up and stored in place of the credential.
type fingerprint [sha256.Size]byte

func fingerprintOf(credential string) fingerprint { return sha256.Sum256([]byte(credential)) }

func (f fingerprint) String() string { return hex.EncodeToString(f[:]) }

// key is SERVICE_API_KEY, hashed so that a comparison takes the same time for every candidate. The zero
// key matches nothing.
type key struct {
	hash *fingerprint
	form form
}

// form is the kind of credential that a string looks like.
type form int

const (
	formKey    form = iota // anything else, usually SERVICE_API_KEY
	formAPIKey             // a person's API key
	formJWT
)

func formOf(credential string) form {
	switch {
	case isAPIKey(credential):
		return formAPIKey
	case strings.HasPrefix(credential, "eyJ") && strings.Count(credential, ".") == 2:
		return formJWT
	}
	return formKey
}

func newKey(s core.Secret) key {
	if s == "" {
		return key{}
	}
	hash := fingerprintOf(s.Reveal())
	return key{&hash, formOf(s.Reveal())}
}

func (k key) set() bool { return k.hash != nil }

func (k key) matches(candidate string) bool {
	if k.hash == nil {
		return false
	}
	got := fingerprintOf(candidate)
	return subtle.ConstantTimeCompare(k.hash[:], got[:]) == 1
}

// print identifies the key in login cookies, so that cookies made with another key are invalid. It is hashed again
// because the store must not contain the key's hash.
func (k key) print() string {
	if k.hash == nil {
		return ""
	}
	return fingerprintOf("login cookies of " + k.hash.String()).String()
}
