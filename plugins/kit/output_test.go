package kit_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

func TestASecretIsFoundInAnyEncoding(t *testing.T) {
	const secret = "4/0AX4XfWh-ü?~>secret+code=="
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	wrapped := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 40) + secret))
	for how, text := range map[string]string{
		"as it is":                      "code " + secret,
		"in JSON":                       string(quoted),
		"in JSON with escaped slashes":  strings.ReplaceAll(secret, "/", `\/`),
		"in a query":                    "code=" + url.QueryEscape(secret),
		"in a path":                     "/codes/" + url.PathEscape(secret),
		"in a query in a query":         url.QueryEscape("code=" + url.QueryEscape(secret)),
		"in base64":                     base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64 of URLs":             base64.URLEncoding.EncodeToString([]byte(secret)),
		"in base64 after one byte":      base64.RawStdEncoding.EncodeToString([]byte("a" + secret + "b")),
		"in base64 after two bytes":     base64.RawURLEncoding.EncodeToString([]byte("ab" + secret + "cd")),
		"in base64 with line breaks":    wrapped[:70] + "\n" + wrapped[70:],
		"in hex":                        hex.EncodeToString([]byte(secret)),
		"in hex in capitals":            strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"as bytes printed by Go":        fmt.Sprintf("%d", []byte(secret)),
		"as bytes printed by Python":    strings.ReplaceAll(fmt.Sprintf("%d", []byte(secret)), " ", ", "),
		"as a field of a line in JSON":  fmt.Sprintf(`{"@message": "x", "code": %q}`, secret),
		"at the end of a line of many":  strings.Repeat("a line\n", 1000) + secret,
		"in base64 of a form of a form": base64.StdEncoding.EncodeToString([]byte("grant_type=x&code=" + secret + "&y=z")),
	} {
		err := kit.Tells(text, []kit.Secret{{What: "another one", Text: "nothing similar"}, {What: "the login code", Text: secret}})
		if err == nil || !strings.Contains(err.Error(), "the login code") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

func TestNoSecretIsReportedWhereThereIsNone(t *testing.T) {
	secrets := []kit.Secret{{What: "a secret", Text: "a-secret-of-the-kit-0123456789"}, {What: "a short one", Text: "word"}, {What: "none", Text: ""}}
	for _, text := range []string{"", "a word", "a-secret-of-the-kit", "%zz \\u00", strings.Repeat("QUJD", 1000)} {
		if err := kit.Tells(text, secrets); err != nil {
			t.Errorf("%q: %v", text[:min(len(text), 40)], err)
		}
	}
}
