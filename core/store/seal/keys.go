package seal

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

const keyBytes = 32 // AES-256

// Keys contains the keys for the state. The first key encrypts; all keys decrypt. A nil *Keys neither encrypts
// nor decrypts.
type Keys struct {
	all []key
}

type key struct {
	id     string // identifies the key without revealing it
	secret []byte
	cipher cipher.AEAD
}

// NewKey returns a new random key in the form that Parse reads.
func NewKey() core.Secret {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails
	return core.Secret(base64.StdEncoding.EncodeToString(secret))
}

// Parse reads keys of 32 bytes each, in base64 or hexadecimal, separated by white space or commas.
// A line that starts with # is a comment. Errors do not contain any of the text.
func Parse(text core.Secret) (*Keys, error) {
	keys := &Keys{}
	lines := bufio.NewScanner(strings.NewReader(text.Reveal()))
	for lines.Scan() {
		if strings.HasPrefix(strings.TrimSpace(lines.Text()), "#") {
			continue
		}
		for _, field := range strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' }) {
			k, err := parseKey(field)
			if err != nil {
				return nil, fmt.Errorf("key %d %w", len(keys.all)+1, err)
			}
			keys.all = append(keys.all, k)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.New("a line is too long to contain keys")
	}
	if len(keys.all) == 0 {
		return nil, errors.New("there is no key; `ropewalk encryption new-key` prints one")
	}
	return keys, nil
}

func parseKey(field string) (key, error) {
	secret, err := hex.DecodeString(field)
	if err != nil {
		secret, err = base64.StdEncoding.DecodeString(field)
	}
	if err != nil || len(secret) != keyBytes {
		return key{}, fmt.Errorf("is not %d bytes in base64 or hexadecimal; `ropewalk encryption new-key` prints one", keyBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	id := sha256.Sum256(append([]byte("ropewalk state key\x00"), secret...))
	return key{id: hex.EncodeToString(id[:4]), secret: secret, cipher: aead}, nil
}

// ID identifies the key that encrypts, without revealing it; "" if there is none.
func (k *Keys) ID() string {
	if k == nil {
		return ""
	}
	return k.all[0].id
}

// Text returns the keys in the form that Parse reads, one per line.
func (k *Keys) Text() core.Secret {
	var b strings.Builder
	for _, key := range k.all {
		b.WriteString(base64.StdEncoding.EncodeToString(key.secret) + "\n")
	}
	return core.Secret(b.String())
}

// Before returns the keys preceded by another key, which then encrypts.
func (k *Keys) Before(first core.Secret) (*Keys, error) {
	return Parse(first + "\n" + k.Text())
}

// First returns only the key that encrypts.
func (k *Keys) First() *Keys { return &Keys{all: k.all[:1]} }
