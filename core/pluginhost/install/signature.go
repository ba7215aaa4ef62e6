package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// keys returns the trusted keys. If plugins.requireSignature is set, it accepts only configured keys, because a
// server trusts only these when it starts the plugin.
func (i *Installer) keys(given []string) (trusted trust, err error) {
	for _, text := range i.Settings.TrustedKeys {
		key, err := parseKey(text)
		if err != nil {
			return trust{}, fmt.Errorf("plugins.trustedKeys: %w", err)
		}
		trusted.keys = append(trusted.keys, key)
	}
	for _, text := range given {
		key, err := readKey(text)
		if err != nil {
			return trust{}, fmt.Errorf("--key %s: %w", text, err)
		}
		if i.Settings.RequireSignature && !slices.ContainsFunc(trusted.keys, func(k minisign.PublicKey) bool { return k.Equal(key) }) {
			return trust{}, fmt.Errorf("--key %s: plugins.requireSignature is set, so add the key to plugins.trustedKeys: the server checks the signature at every start", text)
		}
		trusted.keys, trusted.required = append(trusted.keys, key), true
	}
	trusted.required = trusted.required || i.Settings.RequireSignature
	return trusted, nil
}

// trust determines which signatures are accepted, and whether one is required.
type trust struct {
	keys     []minisign.PublicKey
	required bool
}

// readKey parses text as a key, or reads the key from the file that text names.
func readKey(text string) (minisign.PublicKey, error) {
	raw, err := os.ReadFile(text)
	if err == nil {
		return parseKey(string(raw))
	}
	key, parsed := parseKey(text)
	if parsed != nil {
		return key, errors.Join(parsed, err)
	}
	return key, nil
}

func parseKey(text string) (key minisign.PublicKey, err error) {
	if err := key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return key, errors.New("is not a minisign public key: use the file that `minisign -G` wrote, or the line in it that begins with RW")
	}
	return key, nil
}

// verifySignature returns the key that signed the artifact, or "" if it has no trusted signature and does not
// need one.
func (i *Installer) verifySignature(a artifact, trusted trust) (signer string, err error) {
	name := filepath.Base(a.path)
	if a.signature == nil {
		if trusted.required {
			return "", fmt.Errorf("%s has no signature (%s.minisig in the same place), but one is required; ask its author for it", a.source, name)
		}
		i.Notify(fmt.Sprintf("%s has no signature: its author cannot be verified.", a.source))
		return "", nil
	}
	var signature minisign.Signature
	if err := signature.UnmarshalText(a.signature); err != nil {
		return "", fmt.Errorf("%s.minisig is not a minisign signature: fetch it again", name)
	}
	if len(trusted.keys) == 0 && !trusted.required {
		i.Notify(fmt.Sprintf("The signature of %s with the key %016X is not checked: add the key with --key or to plugins.trustedKeys.", a.source, signature.KeyID))
		return "", nil
	}
	for _, key := range trusted.keys {
		if key.ID() != signature.KeyID {
			continue
		}
		valid, err := signedBy(key, signature, a)
		if err != nil {
			return "", err
		}
		if !valid {
			return "", fmt.Errorf("%s is not what the key %016X signed: the file or its signature was changed; fetch both again from its author", a.source, signature.KeyID)
		}
		return key.String(), nil
	}
	return "", fmt.Errorf("%s is signed with the key %016X, which is not trusted; if it is the author's, add it with --key or to plugins.trustedKeys", a.source, signature.KeyID)
}

func signedBy(key minisign.PublicKey, signature minisign.Signature, a artifact) (bool, error) {
	if signature.Algorithm == minisign.EdDSA { // not hashed first, as old versions of minisign do
		raw, err := os.ReadFile(a.path)
		return err == nil && minisign.Verify(key, raw, a.signature), err
	}
	f, err := os.Open(a.path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	r := minisign.NewReader(f)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return false, err
	}
	return r.Verify(key, a.signature), nil
}
