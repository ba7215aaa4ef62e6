package authtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

func TestInvalidSamplesAreRefusedWithTheReason(t *testing.T) {
	const good = `"good": "g", "issuer": "i", "subject": "s", "expiresAt": "2099-01-01T00:00:00Z"`
	for text, want := range map[string]string{
		`{` + good + `, "audience": "a", "email": "e", "bad": [{"name": "n", "clause": "a bad signature", "token": "t"}], "lacks": ["no expiry"], "issue": ["true"]}`: "<nil>",
		`{` + good + `, "bad": [{"name": "n", "clause": "ugly", "token": "t"}]}`:                                                                                      `bad[0].clause in the samples is "ugly"`,
		`{` + good + `, "people": [{"token": "t"}]}`:                                                                                                                  "each of people needs token, subject and expiresAt (sample 1)",
		`{` + good + `, "unknown": 1}`:                 "read the samples",
		`{` + good + `, "revocation": {"token": "t"}}`: "needs token, kept, begin and revoke",
		`{"good": "g", "issuer": "i", "subject": "s"}`: "need good, issuer, subject and expiresAt",
	} {
		if _, err := authtest.ParseSamples([]byte(text)); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestPlaceholdersStandForTheProvidersNames(t *testing.T) {
	p, err := authtest.NewProvider(newKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Setup = authtest.Introspecting
	const text = `{"issuerUrl": "${issuer}", "client": "${clientId}", "back": "${redirectUri}", "org": "${organization}", "ask": "${introspect}"}`
	want := fmt.Sprintf(`{"issuerUrl": %q, "client": %q, "back": %q, "org": "", "ask": true}`, p.Issuer(), p.ClientID, authtest.RedirectURI)
	if got, about := authtest.SettingsFor(text, p); got != want || !about {
		t.Errorf("got %s, %t, want %s", got, about, want)
	}
	if limits := authtest.LimitsOf(text); limits != (authtest.Limits{NoRoles: true}) {
		t.Errorf("got the limits %+v", limits)
	}
	if got, about := authtest.SettingsFor(`{"file": "/tokens"}`, p); got != `{"file": "/tokens"}` || about {
		t.Errorf("got %s, %t", got, about)
	}
}
