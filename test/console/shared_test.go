package console

import "testing"

// Tabs share a stream of events, and an address names its workspace.
func TestTabsShareOneEventStreamAndAddressesNameTheirWorkspace(t *testing.T) {
	t.Parallel()
	browse(t, "shared.mjs", serve(t, "", "--sample"), nil)
}
