package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// suiteDocument is the client ID that the scenario auth/basic-cimd requires: the URL of a client's metadata document.
// The scenario's authorization server does not fetch the document.
const suiteDocument = "https://conformance-test.local/client-metadata.json"

// installation returns the body of the request that installs the scenario's server. If the scenario has a preregistered
// client, the body contains that client.
func installation(app, url string) map[string]any {
	body := map[string]any{"url": url, "serverName": app}
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given) // most scenarios don't set it
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd" {
		given.ID = suiteDocument
	}
	if given.ID != "" {
		body["transport"] = map[string]any{"auth": map[string]any{"type": "user", "clientId": given.ID, "clientSecret": given.Secret}}
	}
	return body
}

// person is a user with a browser who agrees to everything.
type person struct{ base, app string }

// link links an account, and waits until the account's tools are listed. If the login has ended by then, the person
// logs in again. That happens when the app moves to another authorization server.
func (p person) link() error {
	if err := p.login(); err != nil {
		return err
	}
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/scope-retry-limit" { // this scenario's server refuses every tools/list
		return nil
	}
	for range 2 {
		var ended bool
		if !testkit.Within(harness.Timeout, func() bool {
			tools, err := toolsOf(p.base, p.app)
			ended = err == nil && len(tools) == 0 && p.loginEnded()
			return ended || len(tools) > 0
		}) {
			break
		}
		if !ended {
			return nil
		}
		if err := p.login(); err != nil {
			return err
		}
	}
	return errors.New("the tools of the app are not listed")
}

// loginEnded reports whether the account needs a login.
func (p person) loginEnded() bool {
	listed, err := request(http.MethodGet, p.base+"/v1/accounts?app="+p.app, nil)
	return err == nil && strings.Contains(string(listed), `"state":"login_needed"`)
}

// login starts to link an account and opens the page that the server returns.
func (p person) login() error {
	begun, err := request(http.MethodPost, p.base+"/v1/accounts", map[string]any{"app": p.app})
	if err != nil {
		return err
	}
	var page struct{ URL string }
	if err := json.Unmarshal(begun, &page); err != nil {
		return err
	}
	return p.agree(page.URL)
}

// agree opens the page for linking an account and agrees. The suite's authorization servers have no questions of their
// own.
func (p person) agree(address string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := http.Client{Jar: jar}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r, err := http.NewRequest(method, address, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		response, err := browser.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		_, form, _ := strings.Cut(string(text), `<form method="post" action="`)
		action, _, _ := strings.Cut(form, `"`)
		address = p.base + html.UnescapeString(action)
		switch {
		case err != nil:
			return err
		case method == http.MethodPost && !strings.Contains(string(text), "The account is linked"):
			return fmt.Errorf("the account was not linked: the last page was %s: %s %s", response.Request.URL.Path, response.Status, text)
		}
	}
	return nil
}

// answer accepts every question and leaves all fields at their default values. If the question is a link to a page, the
// person opens the page and agrees there.
func (p person) answer(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if r.Params.Mode == "url" {
		if err := p.agree(r.Params.URL); err != nil {
			return nil, err
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
}
