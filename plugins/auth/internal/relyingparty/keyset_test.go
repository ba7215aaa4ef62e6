package relyingparty

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

func TestKeysOfOtherAlgorithmsAreUsedIfConfigured(t *testing.T) {
	on := func(curve elliptic.Curve) string {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return publicJSON(t, &key.PublicKey)
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p256, ed25519Key := on(elliptic.P256()), publicJSON(t, edwards)
	x25519Key := strings.Replace(ed25519Key, `"Ed25519"`, `"X25519"`, 1)
	for name, c := range map[string]struct {
		keys, algorithm string
		used            int
	}{
		"P-256":               {p256, "ES256", 1},
		"P-384":               {on(elliptic.P384()), "ES256", 0},
		"Ed25519":             {ed25519Key, "EdDSA", 1},
		"X25519":              {x25519Key, "EdDSA", 0},
		"P-256 for RS256":     {p256, "RS256", 0},
		"Ed25519 for ES256":   {ed25519Key, "ES256", 0},
		"one of several":      {ed25519Key + "," + p256 + "," + x25519Key, "ES256", 1},
		"several with one id": {p256 + "," + on(elliptic.P256()), "ES256", 2},
	} {
		set, err := parseKeys([]byte(`{"keys":[`+c.keys+`]}`), []string{c.algorithm})
		if (err == nil) != (c.used > 0) || len(set["k"]) != c.used {
			t.Errorf("%s: %d keys are used (%v), want %d", name, len(set["k"]), err, c.used)
			continue
		}
		for _, key := range set["k"] {
			if key.Algorithm().String() != c.algorithm {
				t.Errorf("%s: the key is for %s", name, key.Algorithm())
			}
		}
	}
}

// publicJSON returns a key as JSON for a key set, with the id k.
func publicJSON(t *testing.T, key any) string {
	t.Helper()
	public, err := jwk.FromRaw(key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(raw), "}") + `,"kid":"k"}`
}

func TestAKeySetIsBounded(t *testing.T) {
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := publicJSON(t, edwards)
	for keys, want := range map[string]string{
		`{"keys":[` + strings.Repeat(key+",", 99) + key + `]}`:  "",
		`{"keys":[` + strings.Repeat(key+",", 100) + key + `]}`: "a set of 101 keys is larger than 100",
		`{"keys":[]}`: "contains no key for signatures",
		`<html>`:      "not a key set",
	} {
		set, err := parseKeys([]byte(keys), []string{"EdDSA"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err != nil && set != nil {
			t.Errorf("got %d, %v, want %q", len(set), err, want)
		}
	}
}

func TestWithoutAKeyIDOneOfSeveralKeysIsNotGuessed(t *testing.T) {
	one := make([]jwk.Key, 1)
	for name, c := range map[string]struct {
		set  keySet
		want int
	}{
		"one": {keySet{"k": one}, 1}, "none": {keySet{}, 0}, "two": {keySet{"a": one, "b": one}, 0}, "two with one id": {keySet{"k": make([]jwk.Key, 2)}, 0},
	} {
		if got := c.set.lookup(""); len(got) != c.want {
			t.Errorf("%s: got %d, want %d", name, len(got), c.want)
		}
	}
}

func TestTextFromOthersIsTruncated(t *testing.T) {
	for text, want := range map[string]string{strings.Repeat("x", 64): strings.Repeat("x", 64), strings.Repeat("x", 65): strings.Repeat("x", 64) + "…"} {
		if got := clip(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
