package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// accounts compares the cost of calls with a person's own account for a remote app to those with one account for
// everybody. Both apps are one server in this process, and one service calls them.
func (b *bench) accounts(ctx context.Context) error {
	far := httptest.NewUnstartedServer(nil)
	far.Config.Handler = accountApp("http://" + far.Listener.Addr().String())
	far.Start()
	defer far.Close()
	remotes, kinds := map[string]any{}, []string{"user", "shared"}
	for _, kind := range kinds {
		remotes[kind] = map[string]any{"url": far.URL + "/mcp", "transport": map[string]any{"auth": map[string]any{"type": kind}}}
	}
	p, err := b.startService(ctx, b.o.Service, service{name: "accounts", bundle: lightBundle, remotes: remotes, env: []string{"ROPEWALK_STORAGE_KEY=" + seal.NewKey().Reveal()}})
	if err != nil {
		return err
	}
	var cs []contestant
	for _, kind := range kinds {
		if err := linkAccount(ctx, strings.TrimSuffix(p.url, "/mcp"), kind); err != nil {
			return err
		}
		c := contestant{name: "ropewalk, " + kind, target: serviceTarget(p.url, ""), process: p}
		c.target.Tool = kind + "__echo"
		if err := b.ready(ctx, c); err != nil {
			return err
		}
		cs = append(cs, c)
	}
	for _, c := range []int{1, 16} {
		got, err := b.race(ctx, fmt.Sprintf("call c=%d, accounts", c), load.Plan{Kind: load.Calls, Concurrency: c}, cs...)
		if err != nil {
			return err
		}
		b.compareRates(fmt.Sprintf("calls/s with a person's own account, against a shared one, c=%d", c), 0.95, got[0], got[1])
		b.compareCPU(fmt.Sprintf("CPU per call with a person's own account, against a shared one, c=%d", c), 1.05, got[0], got[1])
	}
	return nil
}

// accountApp is a remote app with the tool echo, together with its authorization server, at an address. It never prompts
// and has only one token.
func accountApp(address string) http.Handler {
	const token, metadata = "Bearer token", "/.well-known/oauth-protected-resource/mcp"
	documents := map[string]string{
		metadata: fmt.Sprintf(`{"resource":"%[1]s/mcp","authorization_servers":["%[1]s"]}`, address),
		"/.well-known/oauth-authorization-server": fmt.Sprintf(`{"issuer":"%[1]s","authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token",
			"registration_endpoint":"%[1]s/register","code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true}`, address),
		"/register": `{"client_id":"bench","token_endpoint_auth_method":"none"}`,
		"/token":    `{"access_token":"token","token_type":"Bearer","expires_in":86400,"refresh_token":"refresh"}`,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		document, known := documents[r.URL.Path]
		switch {
		case known:
			_, _ = io.WriteString(w, document)
		case r.URL.Path == "/authorize":
			q := r.URL.Query()
			back := url.Values{"code": {"code"}, "state": {q.Get("state")}, "iss": {address}}
			http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
		case r.URL.Path != "/mcp":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("Authorization") != token:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+address+metadata+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			answerEcho(w, r)
		}
	})
}

// answerEcho responds to an MCP message with what the service requires, and no more.
func answerEcho(w http.ResponseWriter, r *http.Request) {
	var message struct {
		ID     json.RawMessage
		Method string
		Params struct{ ProtocolVersion string }
	}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case json.NewDecoder(r.Body).Decode(&message) != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case message.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch message.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`, message.Params.ProtocolVersion)
	case "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"done"}]}`
	}
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, message.ID, result)
}

// linkAccount links an account as a browser does, once the app runs.
func linkAccount(ctx context.Context, base, app string) error {
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := &http.Client{Jar: jar}
	var begun struct{ URL string }
	for {
		text, err := visit(limit, client, http.MethodPost, base+"/v1/accounts", fmt.Sprintf(`{"app":%q}`, app))
		if err == nil {
			err = json.Unmarshal([]byte(text), &begun)
		}
		if err == nil {
			break
		}
		select {
		case <-limit.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
	page, err := visit(limit, client, http.MethodGet, begun.URL, "")
	if err != nil {
		return err
	}
	_, action, _ := strings.Cut(page, ` method="post" action="`)
	action, _, _ = strings.Cut(action, `"`)
	if page, err = visit(limit, client, http.MethodPost, base+html.UnescapeString(action), ""); err == nil && !strings.Contains(page, "The account is linked") {
		err = errors.New("the account is not linked: " + page)
	}
	return err
}

// visit returns the page at the end of all redirects. body is JSON, or "" for an empty form.
func visit(ctx context.Context, client *http.Client, method, address, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %s", method, resp.Request.URL.Path, resp.Status, text)
	}
	return string(text), err
}
