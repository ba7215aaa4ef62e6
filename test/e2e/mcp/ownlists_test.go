package mcp

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// officialClient is the official client. It answers every question and counts list changes.
type officialClient struct {
	*mcp.ClientSession
	tools, resources chan struct{}
}

func connect(t *testing.T, s *harness.Server, revision string) *officialClient {
	t.Helper()
	c := &officialClient{tools: make(chan struct{}, 100), resources: make(chan struct{}, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { c.tools <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { c.resources <- struct{}{} },
	})
	var err error
	transport := &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp/" + harness.Workspace}
	if c.ClientSession, err = client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *officialClient) call(t *testing.T, tool, text string) *mcp.CallToolResult {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}})
	if err != nil || result.IsError {
		t.Fatalf("%s: %+v %v", tool, result, err)
	}
	return result
}

func (c *officialClient) lists(t *testing.T, tool string) bool {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Tools, func(l *mcp.Tool) bool { return l.Name == tool })
}

func (c *officialClient) listsResource(t *testing.T, uri string) bool {
	t.Helper()
	list, err := c.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Resources, func(r *mcp.Resource) bool { return r.URI == uri })
}

func await(t *testing.T, what string, changed <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatalf("no notification that the list of %s changed", what)
	}
}

func TestToolsAndResourcesAddedInASessionBelongToThatSession(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "unfolding", harness.Unfolding)})
	alice, bob := connect(t, s, "2025-11-25"), connect(t, s, "2025-11-25")
	alice.call(t, "unfolding__unfold", "") // after the first question, each session has its own instance of the app
	bob.call(t, "unfolding__unfold", "")

	alice.call(t, "unfolding__unfold", "secret")
	await(t, "tools", alice.tools)
	await(t, "resources", alice.resources)
	if !alice.lists(t, "unfolding__secret") || !alice.listsResource(t, harness.AddedResource) {
		t.Error("tools added in a session should be listed in that session")
	}
	if text := alice.call(t, "unfolding__secret", "hello").Content[0].(*mcp.TextContent).Text; text != "hello" {
		t.Errorf("the added tool returned %q", text)
	}
	if read, err := alice.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: harness.AddedResource}); err != nil || len(read.Contents) != 1 {
		t.Errorf("the added resource: %+v %v", read, err)
	}

	if bob.lists(t, "unfolding__secret") || bob.listsResource(t, harness.AddedResource) {
		t.Error("another session should not list the added tools")
	}
	if result, err := bob.CallTool(t.Context(), &mcp.CallToolParams{Name: "unfolding__secret", Arguments: map[string]any{"text": "x"}}); err == nil {
		t.Errorf("another session should not be able to call the added tool: %+v", result)
	}
	bob.call(t, "unfolding__unfold", "other")
	await(t, "tools", bob.tools)
	if len(bob.tools) > 0 || !bob.lists(t, "unfolding__other") || bob.lists(t, "unfolding__secret") || alice.lists(t, "unfolding__other") {
		t.Error("the sessions should have separate lists")
	}
}

func TestClientsWithoutASessionListToolsAddedForThem(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "grower", harness.Plain)})
	stateless, session := connect(t, s, "2026-07-28"), connect(t, s, "2025-11-25")
	stateless.call(t, "grower__grow", "grown")
	testkit.Eventually(t, "the added tool is listed", func() bool { return stateless.lists(t, "grower__grown") })
	stateless.call(t, "grower__grown", "hello")
	if session.lists(t, "grower__grown") {
		t.Error("a session should not list a tool that was added for clients without a session")
	}
}

func TestALinkInAResultIsReadFromTheAppThatReturnedIt(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	for _, name := range []string{"one", "two"} {
		s.Install(t, map[string]any{"path": harness.GoBundle(t, name, harness.Unfolding)})
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for _, app := range []string{"one", "two"} {
			c := connect(t, s, revision)
			uri := c.call(t, app+"__link", "").Content[0].(*mcp.ResourceLink).URI
			read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, "/"+app) {
				t.Errorf("%s: the link %s of %s: %+v %v", revision, uri, app, read, err)
			}
		}
	}
}
