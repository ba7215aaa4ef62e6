package interact

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

func TestRecordedCapabilitiesBelongToOneVersionOfABundle(t *testing.T) {
	for asks := ability(1); asks < abilitySamplingTools<<1; asks++ {
		settings := fakes.NewSettings(map[string]string{asksPrefix + "broken": "{"})
		name, value := newAsksRecord(Bundle{"@a/b", "1.0"}, asks)
		_ = settings.PutSetting(t.Context(), name, value)
		b := newBroker(t, settings)
		b.LoadCapabilities(t.Context())
		expect(t, "what it asks for", b.capabilities.get(Bundle{"@a/b", "1.0"}).asks, asks)
		expect(t, "what its next version asks for", b.capabilities.get(Bundle{"@a/b", "1.1"}).asks, ability(0))
	}
}

func TestOnlyRelevantChangesReloadTheRecordedCapabilities(t *testing.T) {
	name, _ := newAsksRecord(Bundle{"@a/b", "1.0"}, abilityForm)
	for _, c := range []struct {
		change core.Change
		want   bool
	}{
		{core.Change{Kind: core.ChangeSetting, Name: name}, true},
		{core.Change{Kind: core.ChangeSetting, Name: "model"}, false},
		{core.Change{Kind: core.ChangeApp, Name: name}, false},
		{core.Change{Kind: core.ChangeAll}, true},
	} {
		expect(t, string(c.change.Kind)+" "+c.change.Name, ChangesCapabilities(c.change), c.want)
	}
}
