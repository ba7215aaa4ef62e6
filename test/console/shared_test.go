package console

import "testing"

// Tabs share one event stream, and an address contains its workspace.
func TestTabsShareOneEventStreamAndAddressesNameTheirWorkspace(t *testing.T) {
	t.Parallel()
	browse(t, "shared.mjs", serve(t, "", "--sample"), nil)
}
