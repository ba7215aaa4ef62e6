package login

import (
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestGuessingTheKeyAsABearerTokenIsLimitedLikeLogins(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/apps", "/v1/auth/session", "/v1/health", "/v1/bundles/health", "/v1/auth/login"} {
		s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
		try := func(key, client string) harness.Response {
			if path == "/v1/auth/login" {
				return s.Do(t, "POST", path, map[string]any{"key": key}, "X-Forwarded-For: "+client)
			}
			return s.Do(t, "GET", path, nil, "Authorization: Bearer "+key, "X-Forwarded-For: "+client)
		}
		limited := 0
		for i := range 30 {
			if a := try(fmt.Sprintf("a-wrong-key-%d", i), "203.0.113.1"); a.Status == 429 {
				limited++
				if a.Header.Get("Retry-After") == "" {
					t.Errorf("%s: no Retry-After", path)
				}
			}
		}
		if limited < 15 {
			t.Errorf("%s: only %d of 30 guesses by one client were limited", path, limited)
		}
		if a := try("a-wrong-key", "203.0.113.2"); a.Status == 429 {
			t.Errorf("%s: another client behind the proxy is limited: %s", path, a.Body)
		}
		if a := try(harness.APIKey, "203.0.113.1"); a.Status != 200 {
			t.Errorf("%s: the valid key returns %d %s", path, a.Status, a.Body)
		}
		limited = 0
		for i := 0; limited < 100 && i < 4000; i++ { // a client behind one proxy that forges addresses
			if a := try("a-wrong-key", fmt.Sprintf("198.51.%d.%d", i/200, i%200)); a.Status == 429 {
				limited++
			}
		}
		if limited < 100 {
			t.Errorf("%s: only %d guesses through one proxy were limited", path, limited)
		}
		if a := try(harness.APIKey, "198.51.100.1"); a.Status != 200 {
			t.Errorf("%s: the valid key returns %d %s", path, a.Status, a.Body)
		}
	}
}

func TestRepeatingTheSameWrongKeyDoesNotCountAsGuessing(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	for i := range 50 {
		if a := s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer the-key-of-another-server"); a.Status != 401 {
			t.Fatalf("request %d with the same invalid key: %d %s", i, a.Status, a.Body)
		}
	}
}
