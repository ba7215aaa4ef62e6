package oidc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// lines collects what every adapter of a test logs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// TestNoSecretIsLogged runs the whole kit, faults included, at trace level.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	const secret = "a-client-secret-that-nobody-may-see"
	log := &lines{}
	keys := newKeys(t)
	var tokens []string
	s := authtest.Subject{Keys: keys, Rechecks: true, Open: func(ctx context.Context, p *authtest.Provider) (auth.Adapter, func(), error) {
		adapter := oidc.New()
		adapter.UseLogger(hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace, JSONFormat: true}))
		var settings map[string]any
		if err := json.Unmarshal([]byte(authtest.Settings(p)), &settings); err != nil {
			return nil, nil, err
		}
		settings["clientSecret"] = secret
		raw, err := json.Marshal(settings)
		if err != nil {
			return nil, nil, err
		}
		tokens = append(tokens, p.Token())
		return adapter, func() { _ = adapter.Close() }, adapter.Configure(ctx, plugins.Config{JSON: raw})
	}}
	if failed := kit.Failed(kit.Run(t.Context(), authtest.Checks(s), s)); len(failed) > 0 {
		t.Fatalf("the kit failed: %q", failed)
	}
	written := log.b.String()
	if !strings.Contains(written, "The identity provider did not give") {
		t.Error("nothing was logged about a provider that is away, so the test sees nothing")
	}
	for _, token := range append(tokens, secret) {
		for _, part := range strings.Split(token, ".") {
			if strings.Contains(written, part) {
				t.Fatalf("the log holds %q", part)
			}
		}
	}
}

// TestKeysFromAnotherHostThanTheDocumentsAreNotFetchedByRedirect: a redirect is the provider's
// word for a page, not for whom to trust.
func TestKeysFromAnotherHostThanTheDocumentsAreNotFetchedByRedirect(t *testing.T) {
	p, err := authtest.NewProvider(newKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.SetFault(authtest.Elsewhere)
	adapter, end, err := direct(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if id, err := adapter.Verify(t.Context(), auth.VerifyRequest{Token: p.Token()}); err == nil {
		t.Errorf("a token was accepted by keys from elsewhere: %+v", id)
	}
}
