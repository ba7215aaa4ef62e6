package seal

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// prefix starts every encrypted record: sealed:v1:<key id>:<base64 of nonce, ciphertext and tag>. Plain text
// records are JSON, which never starts like that.
const prefix = "sealed:v1:"

// UnknownKeyError means that a record is encrypted with a key that is not among the keys.
type UnknownKeyError struct{ ID string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("it is encrypted with the key %s, which is not among the configured keys; add that key after the current one "+
		"(storage.keyFile, storage.keyCommand, storage.key)", e.ID)
}

// Seal encrypts a record with the first key; if there are no keys, it returns the record unchanged. about identifies where the
// record belongs. Decryption needs the same value, so that a record cannot be moved to another place.
func (k *Keys) Seal(plain []byte, about string) string {
	if k == nil {
		return string(plain)
	}
	first := k.all[0]
	return prefix + first.id + ":" + base64.StdEncoding.EncodeToString(first.cipher.Seal(nil, nil, plain, []byte(about)))
}

// Open decrypts a record that Seal returned. It returns a plain text record unchanged. The error is
// an *UnknownKeyError if the record's key is not among the keys.
func (k *Keys) Open(stored, about string) ([]byte, error) {
	rest, sealed := strings.CutPrefix(stored, prefix)
	if !sealed {
		return []byte(stored), nil
	}
	id, text, _ := strings.Cut(rest, ":")
	if k == nil {
		return nil, &UnknownKeyError{ID: id}
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	for _, key := range k.all {
		if key.id != id {
			continue
		}
		plain, err := key.cipher.Open(nil, nil, content, []byte(about))
		if err != nil {
			return nil, fmt.Errorf("it is damaged, or was written for another app: %w", err)
		}
		return plain, nil
	}
	return nil, &UnknownKeyError{ID: id}
}

// current reports whether a stored record is in the form that Seal would write now.
func (k *Keys) current(stored string) bool {
	if k == nil {
		return true // if there are no keys, encrypted records are left unchanged
	}
	return strings.HasPrefix(stored, prefix+k.ID()+":")
}
