package seal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func newKeys(t *testing.T, texts ...core.Secret) *Keys {
	t.Helper()
	var all strings.Builder
	for _, text := range texts {
		all.WriteString(text.Reveal() + "\n")
	}
	k, err := Parse(core.Secret(all.String()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreReadInBase64AndHexadecimalInOrder(t *testing.T) {
	a, b := NewKey(), NewKey()
	inHex := hex.EncodeToString(newKeys(t, b).all[0].secret)
	for _, text := range []string{
		a.Reveal() + "\n" + b.Reveal(), a.Reveal() + "," + b.Reveal(), "# comment " + b.Reveal() + "\r\n" + a.Reveal() + " \r\n\n" + inHex + "\n",
	} {
		k, err := Parse(core.Secret(text))
		if err != nil || len(k.all) != 2 || k.ID() != newKeys(t, a).ID() || k.all[1].id != newKeys(t, b).ID() {
			t.Errorf("%q: %+v, %v", text, k, err)
		}
	}
	first, err := newKeys(t, a).Before(b)
	if err != nil || first.ID() != newKeys(t, b).ID() || len(first.all) != 2 || len(first.First().all) != 1 {
		t.Errorf("%+v, %v", first, err)
	}
}

func TestAnInvalidKeyIsRefusedWithoutShowingIt(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "there is no key",
		"# only a comment":              "there is no key",
		"canary":                        "key 1 is not 32 bytes",
		"Y2FuYXJ5":                      "key 1 is not 32 bytes",
		NewKey().Reveal() + " canary":   "key 2 is not 32 bytes",
		strings.Repeat("canary", 1<<20): "too long",
	} {
		_, err := Parse(core.Secret(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "Y2Fu") {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

func TestARecordIsReadableOnlyWithItsKeyAndInItsPlace(t *testing.T) {
	a, b := NewKey(), NewKey()
	one, two := newKeys(t, a), newKeys(t, b, a)
	about := AboutApp("ws_default", "app")
	record := one.Seal([]byte(`{"env":{"T":"canary"}}`), about)
	if strings.Contains(record, "canary") || record == one.Seal([]byte(`{"env":{"T":"canary"}}`), about) {
		t.Errorf("%s", record)
	}
	for _, k := range []*Keys{one, two} {
		if plain, err := k.Open(record, about); err != nil || string(plain) != `{"env":{"T":"canary"}}` {
			t.Errorf("%s, %v", plain, err)
		}
	}
	if one.current(record) != true || two.current(record) != false {
		t.Error("the first key should determine which records are current")
	}
	for _, k := range []*Keys{nil, newKeys(t, b)} {
		_, err := k.Open(record, about)
		unknown, ok := errors.AsType[*UnknownKeyError](err)
		if !ok || unknown.ID != one.ID() || strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("another key: %v", err)
		}
	}
	if _, err := one.Open(record, AboutApp("ws_other", "app")); err == nil || !strings.Contains(err.Error(), "written for another app") {
		t.Errorf("moved to another workspace: %v", err)
	}
	for i := len(prefix) + 9; i < len(record); i++ { // every character after the id of the key
		changed := []byte(record)
		changed[i] ^= 1
		if plain, err := one.Open(string(changed), about); err == nil && i < len(record)-3 { // the last characters may hold unused bits
			t.Errorf("character %d changed: %s", i, plain)
		}
	}
}

func TestPlainTextRecordsAreReadAsTheyAre(t *testing.T) {
	for _, k := range []*Keys{nil, newKeys(t, NewKey())} {
		if plain, err := k.Open(`{"a":1}`, "x"); err != nil || string(plain) != `{"a":1}` {
			t.Errorf("%s, %v", plain, err)
		}
	}
	var none *Keys
	if none.Seal([]byte("{}"), "x") != "{}" || none.ID() != "" {
		t.Error("without keys, nothing should be encrypted")
	}
}
