package mcphttp

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// credentials adds the headers that every request to /mcp needs.
type credentials struct {
	next http.RoundTripper
	who  who
}

func (c credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+c.who.token)
	req.Header.Set("X-Workspace-Id", c.who.workspace)
	return c.next.RoundTrip(req)
}

func TestTheOfficialClientCompletesASession(t *testing.T) {
	r := start(t, nil)
	progress, changed := make(chan float64, 16), make(chan struct{}, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			progress <- req.Params.Progress
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	transport := &mcp.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: &http.Client{Transport: credentials{r.client.Transport, alice}}}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	if got := session.InitializeResult(); got.ServerInfo.Name != "ropewalk" || got.ProtocolVersion != "2025-11-25" {
		t.Errorf("initialize: %+v", got)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 6 || list.Tools[0].Name != "demo__echo" {
		t.Fatalf("tools: %v %v", list, err)
	}
	params := &mcp.CallToolParams{Name: "demo__progress", Arguments: map[string]any{"steps": 3}}
	params.SetProgressToken("p")
	result, err := session.CallTool(t.Context(), params)
	if err != nil || result.Content[0].(*mcp.TextContent).Text != "alice/ws_one" {
		t.Fatalf("call: %v %v", result, err)
	}
	for want := range 3 {
		if got := <-progress; got != float64(want+1) {
			t.Errorf("progress %v, want %d", got, want+1)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	go func() {
		<-r.fakeNamespace.started
		cancel()
	}()
	if _, err := session.CallTool(cancelled, &mcp.CallToolParams{Name: "demo__wait"}); err == nil {
		t.Error("a cancelled call should fail")
	}
	if err := <-r.fakeNamespace.ended; err == nil {
		t.Error("the tool's call should have been cancelled")
	}
	for len(r.endpoint.listening()) == 0 { // the client opens its GET stream in the background
		<-time.After(5 * time.Millisecond)
	}
	r.fakeNamespace.changed()
	<-changed
	if err := session.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := len(r.endpoint.live.All()); n != 0 {
		t.Errorf("%d sessions remain", n)
	}
}

func TestTheOfficialClientAnswersQuestions(t *testing.T) {
	r := start(t, nil)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"asked": req.Params.Message}}, nil
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: &http.Client{Transport: credentials{r.client.Transport, alice}}}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	r.fakeNamespace.app.answered = func(answer string) { answered <- answer }
	if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "demo://ask"}); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got != `{"action":"accept","content":{"asked":"?"}}` {
		t.Errorf("the app received the answer %s", got)
	}
	if prompts, err := session.ListPrompts(t.Context(), nil); err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "demo__greet" {
		t.Errorf("prompts: %+v %v", prompts, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}
