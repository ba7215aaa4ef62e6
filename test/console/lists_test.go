package console

import "testing"

// Of 1,000 apps, 10,000 conversations and 100,000 events, only the rows in sight are in the page.
func TestLongListsKeepOnlyTheRowsInSight(t *testing.T) {
	t.Parallel()
	browse(t, "lists.mjs", serve(t, "", "--sample"), nil)
}

// An event makes the page ask again, once for many, and an answer that was asked for before is not shown; a
// conversation without its answer is asked for until the answer is there.
func TestThePageAsksAgainForWhatHasChanged(t *testing.T) {
	t.Parallel()
	browse(t, "fresh.mjs", serve(t, "", "--sample"), nil)
}
