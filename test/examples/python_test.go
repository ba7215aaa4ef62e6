package examples

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// authPython installs the example and returns its executable.
func authPython(t *testing.T) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "python3", "-c", "import ensurepip, venv").CombinedOutput(); err != nil {
		t.Fatalf("this test needs Python with venv: install the Debian package python3-venv (apt-get install python3-venv): %v\n%s", err, out)
	}
	return filepath.Join(install(t, "auth-python", ".venv", "requirements.txt", "src", "tests"), "auth-python")
}

func newKeys(t *testing.T) *authtest.Keys {
	t.Helper()
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// forged returns a token with an invalid signature.
func forged(p *authtest.Provider) string {
	all := p.Forgeries()
	return all[slices.IndexFunc(all, func(f authtest.Forgery) bool { return f.Clause == authtest.Signature })].Token
}

func TestTheAuthAdapterInPythonKeepsTheContract(t *testing.T) {
	t.Parallel()
	path := authPython(t)
	plugintest.Judge(t, authtest.Properties(), plugintest.Trial(kit.Quick), authtest.Subject{Keys: newKeys(t), Logins: true, Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
		h, _ := newHost(t)
		adapter, err := h.Auth(ctx, plugin(t, path, authtest.Settings(p)))
		if err != nil {
			return nil, nil, err
		}
		return adapter, func() { adapter.Close(context.Background()) }, nil
	}})
}

func TestTheAuthAdapterInPythonIsReplacedWhenItIsKilled(t *testing.T) {
	path := authPython(t)
	provider, err := authtest.NewProvider(newKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	h, log := newHost(t)
	adapter, err := h.Auth(t.Context(), plugin(t, path, authtest.Settings(provider)))
	if err != nil {
		t.Fatal(err)
	}
	defer adapter.Close(context.Background())
	mustHold(t, log, "The adapter is ready.", `"@level":"info"`, `"issuer":"`+provider.Issuer()+`"`, "auth.example")

	good := provider.Token()
	stranger := forged(provider)
	killUnderCalls(t, h, 5, func(ctx context.Context) error {
		req := auth.VerifyRequest{Token: good, Audiences: []string{provider.Audience}}
		if id, err := adapter.Verify(ctx, req); err != nil || id.Subject != "user_alice" {
			return fmt.Errorf("a valid token: %q, %w", id.Subject, err)
		}
		req.Token = stranger
		if id, err := adapter.Verify(ctx, req); err == nil {
			return fmt.Errorf("a forged token should be rejected, but was accepted as %q's", id.Subject)
		}
		return nil
	})
	for _, part := range append(strings.Split(good, "."), strings.Split(stranger, ".")...) {
		if len(part) > 40 && strings.Contains(log.String(), part) {
			t.Error("the log should not contain part of a token")
		}
	}
}

func TestTheAuthAdapterInPythonReportsInvalidSettings(t *testing.T) {
	t.Parallel()
	path := authPython(t)
	wantProblems(t, plugins.KindAuth, path, `{"isuer": "https://id.example.com", "audiences": ["a", 5], "redirectUri": "http://id.example.com/cb"}`,
		`isuer: is not a setting (did you mean "issuer"?)`,
		"audiences[1]: must be a string, not a number",
		"issuer: must be set to the provider's issuer URL, such as https://id.example.com",
		"redirectUri: must be an https URL (http is for loopback addresses only)",
		"clientId: must be set when redirectUri is: a browser login needs both",
	)
}

func TestTheAuthAdapterInPythonServesOnlyItsServer(t *testing.T) {
	t.Parallel()
	servesOnlyItsServer(t, plugins.KindAuth, authPython(t))
}
