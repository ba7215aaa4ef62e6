package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/ropewalk/ropewalk/core"
)

// fingerprint is the sha256 of a credential: what is compared, looked up and stored in its place.
type fingerprint [sha256.Size]byte

func fingerprintOf(credential string) fingerprint { return sha256.Sum256([]byte(credential)) }

func (f fingerprint) String() string { return hex.EncodeToString(f[:]) }

// key is the API key, hashed, so that a comparison takes the same time whatever it is compared
// with and however long that is. The zero key matches nothing.
type key struct{ hash *fingerprint }

func newKey(s core.Secret) key {
	if s == "" {
		return key{}
	}
	hash := fingerprintOf(s.Reveal())
	return key{&hash}
}

func (k key) set() bool { return k.hash != nil }

func (k key) matches(candidate string) bool {
	if k.hash == nil {
		return false
	}
	got := fingerprintOf(candidate)
	return subtle.ConstantTimeCompare(k.hash[:], got[:]) == 1
}

// print names the key in login cookies, so that those bought under another one count no more; it
// is hashed once more, since the store is not the place for the key's own hash.
func (k key) print() string {
	if k.hash == nil {
		return ""
	}
	return fingerprintOf("login cookies of " + k.hash.String()).String()
}
