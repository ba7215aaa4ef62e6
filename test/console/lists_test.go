package console

import "testing"

// With 1,000 apps, 10,000 conversations and 100,000 events, only the visible rows are part of the page.
func TestLongListsRenderOnlyTheVisibleRows(t *testing.T) {
	t.Parallel()
	browse(t, "lists.mjs", serve(t, "", "--sample"), nil)
}

// After an event the page requests the data again, once for many events. It does not show a response to an
// earlier request. A conversation without its answer is requested until the answer exists.
func TestThePageRequestsChangedDataAgain(t *testing.T) {
	t.Parallel()
	browse(t, "fresh.mjs", serve(t, "", "--sample"), nil)
}
