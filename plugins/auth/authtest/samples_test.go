package authtest_test

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

func TestSamplesAreReadStrictly(t *testing.T) {
	const good = `"good": "g", "issuer": "i", "subject": "s", "expiresAt": "2027-01-31T00:00:00Z"`
	for text, want := range map[string]string{
		`{` + good + `, "audience": "a", "bad": [{"name": "n", "clause": "a bad signature", "token": "t"}]}`: "",
		`{` + good + `, "bad": [{"name": "n", "clause": "ugly", "token": "t"}]}`:                             `bad[0].clause of the samples is "ugly"`,
		`{` + good + `, "god": "x"}`:                   `unknown field "god"`,
		`{"good": "g", "issuer": "i", "subject": "s"}`: "need good, issuer, subject and expiresAt",
		`{"good": 1}`: "read the samples",
	} {
		s, err := authtest.ParseSamples([]byte(text))
		switch {
		case want == "" && (err != nil || s.Good != "g" || s.Audience != "a" || s.Identity.Subject != "s" || s.Bad[0].Clause != authtest.Signature):
			t.Errorf("%s: got %+v, %v", text, s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestSettingsStandForTheKitsProvider(t *testing.T) {
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	p, err := authtest.NewProvider(keys)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for text, c := range map[string]struct {
		want  string
		about bool
	}{
		"":                           {authtest.Settings(p), true},
		`{"issuerUrl": "${issuer}"}`: {`{"issuerUrl": "` + p.Issuer() + `"}`, true},
		`{"file": "/tokens"}`:        {`{"file": "/tokens"}`, false},
	} {
		if got, about := authtest.SettingsFor(text, p); got != c.want || about != c.about {
			t.Errorf("%q: got %s, %v", text, got, about)
		}
	}
}
