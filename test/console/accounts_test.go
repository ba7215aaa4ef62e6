package console

import (
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// Ada is an admin of a workspace, and Bob is a member. Both link accounts for a remote app in the browser. Bob does so
// during a chat, while a call waits for his account. Ada does so while calls from other clients wait for hers. Nobody
// can obtain an account through another person's link.
func TestAccountsAreLinkedAndManagedInTheBrowser(t *testing.T) {
	t.Parallel()
	const key = "a-test-key-0123456789"
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"A change"}}`,
		`{"match":{"toolCallId":"c1"},"response":{"content":"The change is made."}}`,
		`{"match":{"toolCallId":"c2"},"response":{"content":"It is changed there."}}`,
		`{"match":{"userMessage":"Change one"},"response":{"toolCalls":[{"id":"c2","name":"far__change","arguments":{}}]}}`,
		`{"match":{"userMessage":"Change it"},"response":{"toolCalls":[{"id":"c1","name":"far__change","arguments":{}}]}}`,
	)
	port := testenv.FreePort(t)
	at := fmt.Sprintf("http://localhost:%d", port)
	login := testenv.StartOpenIDProviderWithForm(t, at+"/v1/auth/callback")
	app := harness.StartAccountApp(t, 600)
	app.Own.Store(true) // this does not change the tools of alice's accounts
	s := harness.Serve(t, harness.Config(fmt.Sprintf(`apiKey: %s
auth:
  adapter: oidc
  issuer: %s
  clientId: ropewalk
  redirectUri: %s/v1/auth/callback
  join: {workspace: default, role: member}
http: {baseUrl: %s}
%s`, key, login.Issuer, at, at, models(p))), harness.Flags("--port", fmt.Sprint(port)), harness.Env("ROPEWALK_STORAGE_KEY="+seal.NewKey().Reveal()))
	s.Key = key
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"url": app.URL, "serverName": "far"})
	browse(t, "accounts.mjs", s, map[string]any{"key": key, "provider": login.Issuer, "issuer": app.Provider.Issuer, "npm": testenv.Node(t), "ropewalk": harness.Binary(t)})
	if n := app.Seen("change alice"); n != 5 {
		t.Errorf("the five calls that waited for an account or a login reached the app %d times", n)
	}
}
