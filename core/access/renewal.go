package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/ropewalk/ropewalk/plugins"
)

// renewalKey returns the cipher that seals the renewal of a login. Its key is derived from the cookie's token, which
// only the browser has, so nobody can get a refresh token from the database.
func renewalKey(token string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(token), nil, "renewal of a login", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealRenewal encrypts a renewal. It returns "" for "".
func sealRenewal(token string, renewal plugins.Secret) (string, error) {
	if renewal == "" {
		return "", nil
	}
	aead, err := renewalKey(token)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(aead.Seal(nil, nil, []byte(renewal.Reveal()), nil)), nil
}

// openRenewal decrypts what sealRenewal returned.
func openRenewal(token, sealed string) (plugins.Secret, error) {
	if sealed == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return "", err
	}
	aead, err := renewalKey(token)
	if err != nil {
		return "", err
	}
	plain, err := aead.Open(nil, nil, raw, nil)
	if err != nil {
		return "", errors.New("the renewal token of a login cannot be decrypted")
	}
	return plugins.Secret(plain), nil
}
