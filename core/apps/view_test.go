package apps

import (
	"encoding/json"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// withViews returns the offer of an app whose tools have these views.
func withViews(uris ...string) (o core.Offer) {
	for _, uri := range uris {
		o.Tools = append(o.Tools, core.Tool{Server: "notes", Name: "t", ViewURI: uri})
	}
	return o
}

func TestTheViewOfAToolDisappearsWithTheTool(t *testing.T) {
	v := newView(core.Installation{Name: "notes"})
	for _, c := range []struct {
		offer core.Offer
		want  string
	}{
		{withViews("", "ui://notes/a"), "ui://notes/notes/a"},
		{withViews("ui://notes/b"), "ui://notes/notes/b"},
		{withViews(""), ""},
		{withViews("ui://notes/c"), "ui://notes/notes/c"},
	} {
		v.setOffer(c.offer)
		got := ""
		if ui := v.app().UI; ui != nil {
			got = ui.PrimaryView.ResourceURI
		}
		expect(t, "the view", got, c.want)
	}
}

func TestAViewThatTheManifestNamesStays(t *testing.T) {
	v := newView(core.Installation{Name: "notes", Manifest: json.RawMessage(`{"manifest_version":"0.3","name":"notes","version":"1","description":"d","author":{"name":"a"},
		"server":{"type":"binary","entry_point":"x","mcp_config":{"command":"x"}},"_meta":{"com.example/host":{"name":"Notes","primaryView":{"resourceUri":"ui://notes/main"}}}}`)})
	for _, offer := range []core.Offer{withViews("ui://notes/a"), withViews("")} {
		v.setOffer(offer)
		if ui := v.app().UI; ui == nil || ui.PrimaryView.ResourceURI != "ui://notes/notes/main" {
			t.Errorf("the view is %+v", ui)
		}
	}
}
