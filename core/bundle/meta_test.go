package bundle

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestUIComesFromAnyVendorKey(t *testing.T) {
	view := map[string]any{"resourceUri": "ui://hello/main"}
	for name, c := range map[string]struct {
		meta map[string]any
		want *core.UI
	}{
		"no _meta": {nil, nil},
		"a whole description": {map[string]any{"ai.nimblebrain/host": map[string]any{"name": "Hi", "icon": "wave", "primaryView": view}},
			&core.UI{Name: "Hi", Icon: "wave", PrimaryView: core.PrimaryView{ResourceURI: "ui://hello/main"}}},
		"a view alone takes the manifest's name and icon": {map[string]any{"com.acme/x": map[string]any{"primaryView": view}},
			&core.UI{Name: "Hello", Icon: "icon.png", PrimaryView: core.PrimaryView{ResourceURI: "ui://hello/main"}}},
		"keys without a view are skipped": {map[string]any{"a/first": map[string]any{"name": "no"}, "b/second": map[string]any{"name": "yes", "icon": "i", "primaryView": view}},
			&core.UI{Name: "yes", Icon: "i", PrimaryView: core.PrimaryView{ResourceURI: "ui://hello/main"}}},
		"an address that is not a ui://":     {map[string]any{"a/b": map[string]any{"primaryView": map[string]any{"resourceUri": "https://x/"}}}, nil},
		"a key with a value of another type": {map[string]any{"a/b": 7, "c/d": map[string]any{"primaryView": "x"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			doc := with(with(minimal(), "display_name", "Hello"), "icon", "icon.png")
			if c.meta != nil {
				doc["_meta"] = c.meta
			}
			got := parse(t, doc).UI()
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheTypeOfAnAppFollowsItsMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		meta map[string]any
		want string
	}{
		"no _meta":                           {map[string]any{}, "plain"},
		"the framework's key":                {map[string]any{"ai.nimblebrain/upjack": map[string]any{"namespace": "apps/crm"}}, "upjack"},
		"another framework":                  {map[string]any{"ai.nimblebrain/synapse": map[string]any{}}, "plain"},
		"a key turned off":                   {map[string]any{"ai.nimblebrain/upjack": false}, "plain"},
		"a name that only ends in the key's": {map[string]any{"com.acme/notupjack": map[string]any{}}, "plain"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, with(minimal(), "_meta", c.meta)).Type(); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestServerName(t *testing.T) {
	for in, want := range map[string]string{
		"@acme/hello":                   "hello",
		"hello":                         "hello",
		"@acme/Hello World":             "hello-world",
		"io.github.acme/my_server.x":    "my-server-x",
		"@acme/größe":                   "gr--e",
		"UPPER":                         "upper",
		strings.Repeat("a", 128):        strings.Repeat("a", 128), // never truncated
		strings.Repeat("a", 31) + "--b": strings.Repeat("a", 31) + "--b",
	} {
		if got, err := ServerName(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "@acme/", "@acme/..", "__", "system", "@acme/System", strings.Repeat("a", 129)} {
		if got, err := ServerName(in); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%q: got %q, %v, want an error", in, got, err)
		}
	}
}
