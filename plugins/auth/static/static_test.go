package static_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/auth/static"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	good    = "good-token-0123456789"
	expired = "expired-token-0123456789"
	foreign = "token-of-another-organization"
)

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// write replaces the token file atomically.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func entry(token, more string) string {
	return fmt.Sprintf("  - tokenSha256: %s\n    subject: alice\n    expires: 2099-01-01T00:00:00Z\n%s", digest(token), more)
}

// configured returns an adapter for a file with that text.
func configured(t *testing.T, text string) (*static.Adapter, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, path, text)
	adapter := static.New()
	if err := adapter.Configure(t.Context(), settings(path, "")); err != nil {
		t.Fatal(err)
	}
	return adapter, path
}

func settings(path, organization string) plugins.Config {
	raw, _ := json.Marshal(map[string]string{"file": path, "organizationId": organization})
	return plugins.Config{JSON: raw}
}

// issuer adds tokens to an adapter's file, which also has some fixed ones.
type issuer struct {
	mu     sync.Mutex
	path   string
	always string
	issued []string
}

func (i *issuer) write(t *testing.T, more string) {
	t.Helper()
	write(t, i.path, "tokens:\n"+i.always+strings.Join(i.issued, "")+more)
}

// issue creates a token for each wish that an entry can express.
func (i *issuer) issue(t *testing.T) func(context.Context, []authtest.Wish) ([]string, error) {
	return func(_ context.Context, wishes []authtest.Wish) ([]string, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		tokens := make([]string, len(wishes))
		for at, w := range wishes {
			organization := "org_1"
			switch w.Spoil {
			case authtest.OtherOrg:
				organization = "org_10"
			case authtest.ForAnother:
				w.Audiences = []string{"https://nowhere.example"}
			case authtest.Expired:
				w.ExpiresAt = time.Now().Add(-time.Minute)
			case "":
			default:
				continue
			}
			if !w.NotBefore.IsZero() {
				continue
			}
			tokens[at] = "issued-" + rand.Text()
			i.issued = append(i.issued, fmt.Sprintf("  - %s\n", marshal(map[string]any{
				"token": tokens[at], "subject": w.Subject, "email": w.Email, "name": w.Name, "orgRole": w.OrgRole, "organization": organization, "audiences": w.Audiences, "expires": w.ExpiresAt.Format(time.RFC3339),
			})))
		}
		i.write(t, "")
		return tokens, nil
	}
}

func marshal(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestStaticKeepsTheContract(t *testing.T) {
	for name, wired := range map[string]bool{"direct": false, "over the wire": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const audience = "https://ropewalk.example/mcp"
			i := &issuer{path: filepath.Join(t.TempDir(), "tokens.yaml"), always: fmt.Sprintf(`  - {tokenSha256: %s, subject: alice, email: alice@example.com, orgRole: admin, organization: org_1, audiences: [%s], expires: 2099-01-01T00:00:00Z}
  - {token: the-token-of-carol, subject: carol, organization: org_1, expires: 2099-01-01T00:00:00Z}
  - {token: %s, subject: bob, organization: org_1, expires: 2020-01-01T00:00:00Z}
  - {token: %s, subject: eve, organization: org_2, expires: 2099-01-01T00:00:00Z}
`, digest(good), audience, expired, foreign)}
			i.write(t, "")
			samples, err := authtest.ParseSamples([]byte(fmt.Sprintf(`{
				"issuer": "ropewalk:static", "good": %q, "subject": "alice", "email": "alice@example.com", "organizationId": "org_1", "expiresAt": "2099-01-01T00:00:00Z", "audience": %q,
				"people": [{"token": "the-token-of-carol", "subject": "carol", "expiresAt": "2099-01-01T00:00:00Z"}],
				"bad": [{"name": "over since 2020", "clause": "an expiry in the past", "token": %q}, {"name": "another organization", "clause": "another organization", "token": %q}, {"name": "the digest", "clause": "a bad signature", "token": %q}],
				"lacks": ["another algorithm", "another issuer", "no expiry", "a start in the future"]}`, good, audience, expired, foreign, digest(good))))
			if err != nil {
				t.Fatal(err)
			}
			revocable := "  - {token: the-token-of-mallory, subject: mallory, organization: org_1, expires: 2099-01-01T00:00:00Z}\n"
			samples.Issue = i.issue(t)
			samples.Revoking = &authtest.Revoking{
				Token: "the-token-of-mallory", Kept: good,
				Begin:  func(context.Context) error { i.write(t, revocable); return nil },
				Revoke: func(context.Context) error { i.write(t, ""); return nil },
			}
			out := &kit.Output{}
			subject := authtest.Subject{Samples: samples, Revokes: true, Heard: out.String, Open: func(ctx context.Context, _ *authtest.Provider) (auth.Adapter, func(), error) {
				adapter := static.New()
				if wired {
					return auth.Client(plugintest.Configured(t, auth.Plugin(adapter), string(settings(i.path, "org_1").JSON))), func() {}, nil
				}
				adapter.UseLogger(hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Trace, JSONFormat: true}))
				return adapter, func() {}, adapter.Configure(ctx, settings(i.path, "org_1"))
			}}
			plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Normal), subject)
		})
	}
}

func TestATokenHasWhatItsEntrySpecifies(t *testing.T) {
	adapter, _ := configured(t, "tokens:\n"+entry(good, "    email: a@example.com\n    name: Alice\n    orgRole: owner\n    organization: org_1\n    scopes: [a, b]\n"))
	id, err := adapter.Verify(t.Context(), auth.VerifyRequest{Token: good, Audiences: []string{"anything"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %s %s %s %s %v", id.Subject, id.Email, id.DisplayName, id.OrgRole, id.OrganizationID, id.Scopes); got != "alice a@example.com Alice owner org_1 [a b]" {
		t.Errorf("got %s", got)
	}
}

func verify(t *testing.T, adapter *static.Adapter, token string) error {
	t.Helper()
	_, err := adapter.Verify(t.Context(), auth.VerifyRequest{Token: token})
	return err
}

func TestAChangedFileAppliesFromTheNextToken(t *testing.T) {
	adapter, path := configured(t, "tokens:\n"+entry(good, ""))
	if err := verify(t, adapter, good); err != nil {
		t.Fatal(err)
	}
	write(t, path, `{"tokens": [{"token": "`+foreign+`", "subject": "eve", "expires": "2099-01-01T00:00:00+02:00"}]}`)
	if err := verify(t, adapter, foreign); err != nil {
		t.Errorf("a token that was added: %v", err)
	}
	if err := verify(t, adapter, good); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("a token that was revoked: got %v, want a refusal", err)
	}
}

func TestAFileThatIsOverwrittenWithTheSameLengthIsReadAgain(t *testing.T) {
	adapter, path := configured(t, "tokens:\n"+entry(good, ""))
	if err := os.WriteFile(path, []byte("tokens:\n"+entry(foreign, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil { // file systems may have coarse timestamps
		t.Fatal(err)
	}
	if err := verify(t, adapter, good); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("a token that was removed: got %v, want a refusal", err)
	}
}

func TestAFileThatHasNotChangedIsReadOnce(t *testing.T) {
	var log testkit.Log
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, path, "tokens:\n"+entry(good, ""))
	adapter := static.New()
	adapter.UseLogger(hclog.New(&hclog.LoggerOptions{Output: &log}))
	if err := adapter.Configure(t.Context(), settings(path, "")); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := verify(t, adapter, good); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "The token file was read"); n != 1 {
		t.Errorf("the file was read %d times", n)
	}
}

func TestAnInvalidFileLeavesTheLastValidTokensForAMinute(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"not YAML":          func(t *testing.T, path string) { write(t, path, "tokens: [") },
		"an entry is wrong": func(t *testing.T, path string) { write(t, path, "tokens: [{}]") },
		"the file is gone": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				adapter, path := configured(t, "tokens:\n"+entry(good, ""))
				spoil(t, path)
				if err := verify(t, adapter, good); err != nil {
					t.Errorf("immediately: %v", err)
				}
				pass(61 * time.Second)
				if err := verify(t, adapter, good); !errors.Is(err, plugins.ErrUnavailable) {
					t.Errorf("a minute later: got %v, want unavailable", err)
				}
				write(t, path, "tokens:\n"+entry(good, "")+entry(foreign, ""))
				if err := verify(t, adapter, good); err != nil {
					t.Errorf("once the file is valid again: %v", err)
				}
			})
		})
	}
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the bubble's clock, not the machine's

func TestErrorsForRefusedFilesNameThePlaceButNoToken(t *testing.T) {
	const secret = "a-secret-that-nobody-may-see"
	for name, c := range map[string]struct{ text, want string }{
		"neither token nor digest":      {"tokens: [{subject: a, expires: 2099-01-01T00:00:00Z}]", "tokens[0]: needs either token or tokenSha256"},
		"both":                          {"tokens: [{token: " + secret + ", tokenSha256: x, subject: a}]", "tokens[0]: needs either"},
		"a short token":                 {"tokens: [{token: short, subject: a, expires: 2099-01-01T00:00:00Z}]", "at least 16 bytes"},
		"no subject":                    {"tokens: [{token: " + secret + "}]", "needs a subject"},
		"no expiry":                     {"tokens: [{token: " + secret + ", subject: a}]", "expires must be a time"},
		"an expiry without a time zone": {"tokens: [{token: " + secret + ", subject: a, expires: 2099-01-01}]", "expires must be a time"},
		"an unknown role":               {"tokens: [{token: " + secret + ", subject: a, orgRole: root, expires: 2099-01-01T00:00:00Z}]", "orgRole must be"},
		"a digest too short":            {"tokens: [{tokenSha256: abcd, subject: a, expires: 2099-01-01T00:00:00Z}]", "64 hex digits"},
		"a digest too long":             {"tokens: [{tokenSha256: " + strings.Repeat("ab", 33) + ", subject: a, expires: 2099-01-01T00:00:00Z}]", "64 hex digits"},
		"more than 4 MiB":               {"tokens: []\n#" + strings.Repeat("x", 4<<20-11), "is larger than"},
		"a digest not in hex":           {"tokens: [{tokenSha256: " + strings.Repeat("xy", 32) + ", subject: a, expires: 2099-01-01T00:00:00Z}]", "64 hex digits"},
		"an unknown name":               {"tokens: [{tokn: " + secret + "}]", "line 1"},
		"a wrong type":                  {"tokens: " + secret, "line 1"},
		"twice the same":                {"tokens:\n" + entry(good, "") + entry(good, ""), "tokens[1]: is the same token as tokens[0]"},
		"two problems":                  {"tokens: [{}, {}]", "tokens[1]"},
		"binary":                        {"\x00\x01", "neither YAML nor JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens.yaml")
			write(t, path, c.text)
			err := static.New().Validate(t.Context(), settings(path, ""))
			if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheSmallestTokenAndTheLargestFileAreAccepted(t *testing.T) {
	token := strings.Repeat("t", 16)
	text := "tokens: [{token: " + token + ", subject: a, expires: 2099-01-01T00:00:00Z}]\n#"
	adapter, _ := configured(t, text+strings.Repeat("x", 4<<20-len(text)))
	if err := verify(t, adapter, token); err != nil {
		t.Error(err)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                        "file: must be the absolute path",
		`{"file": "tokens.yaml"}`:   "file: must be the absolute path",
		`{"file": "/nowhere/x"}`:    "file: no such file",
		`{"file": "/"}`:             "file: is not a file",
		`{"fil": "/etc/x"}`:         `did you mean "file"`,
		`{"file":"/x","issuer":""}`: "issuer: must not be empty",
	} {
		err := static.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(text)})
		if !errors.Is(err, plugins.ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
