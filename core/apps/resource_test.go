package apps

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestResourcesAreReadFromTheApp(t *testing.T) {
	y, events := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	app := install(t, y, source.Request{Path: bundleDir(t, "@test/view", modeWithView, nil)})
	expect(t, "the view of the first tool", *app.UI, core.UI{Name: "view", PrimaryView: core.PrimaryView{ResourceURI: "ui://view/view/main"}})
	said, _ := events.all()[0].Data.(core.BundleInstalled)
	expect(t, "the view in the event", *said.UI, *app.UI)
	install(t, y, source.Request{Path: bundleDir(t, "@test/plain", modeNormal, nil)})
	install(t, y, source.Request{Path: bundleDir(t, "@test/named", modeNormal, map[string]any{"_meta": map[string]any{
		"com.example/host": map[string]any{"name": "Named", "icon": "*", "primaryView": map[string]string{"resourceUri": "ui://view/main"}},
	}})})
	for _, c := range []struct {
		name, app, path string
		code            core.Code // "" if the resource exists
	}{
		{"the primary view of a tool", "view", Primary, ""},
		{"the primary view of the manifest", "named", Primary, ""},
		{"a URI", "plain", "ui://view/main", ""},
		{"a URI with an encoded character that needs no encoding", "plain", "ui://view/%6Dain", ""},
		{"a path under the app's own name", "view", "main", ""},
		{"a path under another name", "plain", "main", core.CodeResourceNotFound},
		{"a primary view of an app that has none", "plain", Primary, core.CodeResourceNotFound},
		{"a URI that the app does not know", "view", "ui://view/other", core.CodeResourceNotFound},
		{"a file", "view", "file:///etc/passwd", core.CodeResourceNotFound},
		{"a file in capitals", "view", "FILE:///etc/passwd", core.CodeResourceNotFound},
		{"a path with ..", "view", "../../etc/passwd", core.CodeResourceNotFound},
		{"a URI with ..", "view", "ui://view/../main", core.CodeResourceNotFound},
		{"an absolute path", "view", "/etc/passwd", core.CodeResourceNotFound},
		{"a backslash", "view", `..\..\etc\passwd`, core.CodeResourceNotFound},
		{"a NUL", "view", "main\x00", core.CodeResourceNotFound},
		{"nothing", "view", "", core.CodeResourceNotFound},
		{"an app that does not exist", "nowhere", Primary, core.CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := y.Resource(t.Context(), ws, c.app, c.path, &interact.Call{})
			if c.code != "" {
				expect(t, "code", core.CodeOf(err), c.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "body", string(r.Body), "<h1>main</h1>")
			expect(t, "type", r.MIME, "text/html;profile=mcp-app")
		})
	}
	if _, err := y.Stop(t.Context(), ws, "view"); err != nil {
		t.Fatal(err)
	}
	_, err := y.Resource(t.Context(), ws, "view", "main", &interact.Call{})
	expect(t, "code when the app is stopped", core.CodeOf(err), core.CodeUnavailable)
}

func TestReadResourceResults(t *testing.T) {
	for _, c := range []struct {
		name, answer, body string
		code               core.Code
	}{
		{"the content with that URI", `{"contents":[{"uri":"ui://b","text":"no"},{"uri":"ui://a","text":"yes"}]}`, "yes", ""},
		{"the first, if none has that URI", `{"contents":[{"uri":"ui://b","text":"first"},{"uri":"ui://c","text":"no"}]}`, "first", ""},
		{"an empty text", `{"contents":[{"uri":"ui://a","text":""}]}`, "", ""},
		{"a blob", `{"contents":[{"uri":"ui://a","blob":"aGk="}]}`, "hi", ""},
		{"no content", `{"contents":[]}`, "", core.CodeResourceNotFound},
		{"an invalid blob", `{"contents":[{"uri":"ui://a","blob":"*"}]}`, "", core.CodeUnavailable},
		{"something else", `[]`, "", core.CodeUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := pickResource([]byte(c.answer), "notes", "ui://a")
			if c.code != "" {
				expect(t, "code", core.CodeOf(err), c.code)
			} else if err != nil {
				t.Fatal(err)
			}
			expect(t, "body", string(r.Body), c.body)
		})
	}
}
