package console

import "testing"

// With 1,000 apps, 10,000 conversations and 100,000 events, only the visible rows are part of the page.
func TestLongListsRenderOnlyTheVisibleRows(t *testing.T) {
	t.Parallel()
	browse(t, "lists.mjs", serve(t, "", "--sample"), nil)
}

// After events, the page requests the affected data again, only once for many events. It never shows a response to an
// earlier request. It polls a conversation without an answer until the answer exists.
func TestThePageRefreshesDataThatHasChanged(t *testing.T) {
	t.Parallel()
	browse(t, "fresh.mjs", serve(t, "", "--sample"), nil)
}
