package e2e

import (
	"slices"
	"strings"
	"testing"
)

// The client of the official SDK's second generation, in a session and without one. The app knows
// sessions only: for the revision without them its question becomes a result, and the answer its call.
func TestTheSecondOfficialClientIsServedThroughMCP(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("everything", everything, "stdio"))})
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { secondClient(t, s.url, revision) })
	}
}

// secondClient has the client use the app "everything" in one revision, wherever it runs.
func secondClient(t *testing.T, url, revision string) {
	t.Helper()
	seen := runScript[struct {
		Server, Revision, Echo, Elicited string
		Tools, Progress, Questions       []string
		Structured                       map[string]any
		Failure                          bool
	}](t, "second.mjs", url, workspace, revision)

	if seen.Server != "ropewalk" || seen.Revision != revision || seen.Echo != "Echo: hello" || !seen.Failure {
		t.Errorf("%+v", seen)
	}
	if !slices.Contains(seen.Tools, "everything__echo") || !slices.Contains(seen.Tools, "system__list_apps") {
		t.Errorf("tools: %v", seen.Tools)
	}
	if seen.Structured["conditions"] != "Light rain / drizzle" {
		t.Errorf("the structured content is %v", seen.Structured)
	}
	want := []string{"1 of 4", "2 of 4", "3 of 4", "4 of 4", "Long running operation completed. Duration: 1 seconds, Steps: 4."}
	if !slices.Equal(seen.Progress, want) {
		t.Errorf("progress came as %q", seen.Progress)
	}
	if len(seen.Questions) != 1 || !strings.Contains(seen.Elicited, "the second client") {
		t.Errorf("it was asked %q, which gave %s", seen.Questions, seen.Elicited)
	}
}
