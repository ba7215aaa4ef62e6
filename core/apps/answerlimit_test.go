package apps

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestAnOversizedResponseFailsItsCallAndTheMessageNamesTheLimit(t *testing.T) {
	for name, r := range map[string]source.Request{
		"process":         {Path: bundleDir(t, "@test/notes", modeNormal, nil), ServerName: "notes"},
		"streamable HTTP": {URL: remoteServer(t, "", "", false).URL + "/notes"},
		"SSE":             {URL: remoteServer(t, "", "", true).URL + "/notes", Transport: &source.Transport{Type: "sse"}},
	} {
		t.Run(name, func(t *testing.T) {
			y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
				private(o)
				o.MaxAnswer = 100_000
			})
			install(t, y, r)
			_, err := callTool(t, y, "notes", "echo", strings.Repeat("x", 100_000))
			if want := "app notes: the app's response is too large: the limit is 100000 bytes (limits.answerBytes)"; core.CodeOf(err) != core.CodeUnavailable || core.TextOf(err) != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if text, err := callTool(t, y, "notes", "echo", strings.Repeat("x", 40_000)); err != nil || len(text) != 40_000 {
				t.Errorf("a smaller response: %d bytes, %v", len(text), err)
			}
		})
	}
}
