package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// viewSession opens a session of the official client. The channel updated receives the URIs of updated resources.
func viewSession(t *testing.T, s *harness.Server) (_ *mcp.ClientSession, updated <-chan string) {
	t.Helper()
	uris := make(chan string, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { uris <- r.Params.URI },
	})
	transport := &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp/" + harness.Workspace}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, uris
}

// readView reads the view and returns the data directory of the view's app.
func readView(t *testing.T, session *mcp.ClientSession, uri string) (dir, answered string, err error) {
	t.Helper()
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", "", err
	}
	return read.Contents[0].Text, read.Contents[0].URI, nil
}

func TestTwoAppsWithTheSameViewURIHaveSeparateViewsEverywhere(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	session, updated := viewSession(t, s)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "one", harness.Viewed)})
	view := func(app string) string { return strings.Replace(harness.View, "ui://", "ui://"+app+"/", 1) }
	for _, uri := range []string{harness.View, view("one")} { // while only one app has the original URI, it works, too
		if dir, answered, err := readView(t, session, uri); err != nil || !strings.Contains(dir, "/apps/one/") || answered != uri {
			t.Errorf("%s is read from %q as %q: %v", uri, dir, answered, err)
		}
	}
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "two", harness.Viewed)})
	if dir, _, err := readView(t, session, harness.View); err == nil {
		t.Errorf("%s is read from %q, although two apps have this URI", harness.View, dir)
	}
	var listed []string
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, r.URI)
	}
	if got, want := strings.Join(listed, " "), view("one")+" "+view("two"); got != want {
		t.Errorf("the resources are %s, want %s", got, want)
	}
	views := map[string]any{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if ui, ok := tool.Meta["ui"].(map[string]any); ok {
			views[tool.Name] = ui["resourceUri"]
		}
	}
	for _, app := range []string{"one", "two"} {
		if views[app+"__show"] != view(app) {
			t.Errorf("_meta.ui.resourceUri of %s__show is %v", app, views[app+"__show"])
		}
		if dir, answered, err := readView(t, session, view(app)); err != nil || !strings.Contains(dir, "/apps/"+app+"/") || answered != view(app) {
			t.Errorf("%s is read from %q as %q: %v", view(app), dir, answered, err)
		}
		shown, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: app + "__show"})
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(shown.Content); err != nil || !strings.Contains(string(raw), `"uri":"`+view(app)+`"`) {
			t.Errorf("the result of %s has no link to its view: %s (%v)", app, raw, err)
		}
	}
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: view("two")}); err != nil {
		t.Fatal(err)
	}
	for _, app := range []string{"one", "two"} {
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: app + "__touch"}); err != nil {
			t.Fatal(err)
		}
	}
	if uri := <-updated; uri != view("two") {
		t.Errorf("got an update of %s in a session that subscribed to %s", uri, view("two"))
	}
}

func TestABareToolNameRefersToTheAppWhoseViewTheSessionRead(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	for _, app := range []string{"one", "two"} {
		s.Install(t, map[string]any{"path": harness.GoBundle(t, app, harness.Viewed)})
	}
	show := func(session *mcp.ClientSession) (string, error) {
		shown, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "show"})
		if err != nil {
			return "", err
		}
		text, _ := shown.Content[0].(*mcp.TextContent)
		return text.Text, nil
	}
	host, _ := viewSession(t, s)
	other, _ := viewSession(t, s)
	if text, err := show(host); err == nil {
		t.Errorf("before a view was read, show is a tool of %q", text)
	}
	if _, _, err := readView(t, host, "ui://two/clock/view.html"); err != nil {
		t.Fatal(err)
	}
	if text, err := show(host); err != nil || !strings.Contains(text, "/apps/two/") {
		t.Errorf("after the view of two was read, show is a tool of %q: %v", text, err)
	}
	if text, err := show(other); err == nil {
		t.Errorf("in a session that has read no view, show is a tool of %q", text)
	}
	if _, _, err := readView(t, host, "ui://one/clock/view.html"); err != nil {
		t.Fatal(err)
	}
	if text, err := show(host); err == nil {
		t.Errorf("after both views were read, show is a tool of %q", text)
	}
}
