package console

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// Ada and Bob log in through the identity provider, each with their own browser profile. They share a workspace that
// Ada administers, and each has a personal workspace. Both see only their own data, even if one logs in after the other
// with the same profile.
func TestTwoPeopleWhoLogInWithOpenIDNeverSeeEachOthersData(t *testing.T) {
	t.Parallel()
	const key = "a-test-key-0123456789"
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title","userMessage":"harbour"},"response":{"content":"Harbour cruise"}}`,
		`{"match":{"systemMessage":"Write a title","userMessage":"kestrel"},"response":{"content":"Kestrel nest box"}}`,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"A talk"}}`,
		`{"match":{"userMessage":"broken kestrel"},"response":{"error":{"message":"not this one","type":"invalid_request_error"},"status":400}}`,
		`{"match":{"toolCallId":"k1"},"response":{"content":"The kestrel was greeted."}}`,
		`{"match":{"userMessage":"greet the kestrel"},"response":{"toolCalls":[{"id":"k1","name":"porter__greet","arguments":{"guest":"kestrel"}}]}}`,
		`{"match":{"userMessage":"kestrel"},"response":{"content":"A kestrel wants a box with an open front."}}`,
		`{"match":{"userMessage":"harbour"},"response":{"content":"The harbour cruise leaves at noon."}}`,
	)
	port := testenv.FreePort(t)
	at := fmt.Sprintf("http://localhost:%d", port)
	provider := testenv.StartOpenIDProviderWithForm(t, at+"/v1/auth/callback")
	registry := t.TempDir()
	for name, title := range map[string]string{"harbour": "Harbour", "kestrel": "Kestrel"} {
		packed(t, filepath.Join(registry, name+".mcpb"), greeter(t, name, title, nil, nil))
	}
	s := serve(t, fmt.Sprintf(`apiKey: %s
auth:
  adapter: oidc
  issuer: %s
  clientId: ropewalk
  redirectUri: %s/v1/auth/callback
  admins: [carol@example.com]
  join: {workspace: default, role: member}
registries:
  - {name: internal, adapter: directory, dir: '%s'}
tools: {approve: [porter__greet]}
%s`, key, provider.Issuer, at, registry, models(p)), "--port", fmt.Sprint(port))
	s.Key = key
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": unpacked(t, greeter(t, "porter", "Porter", nil, nil))})
	browse(t, "people.mjs", s, map[string]any{"key": key, "provider": provider.Issuer})
}
