package sessionstoretest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// liar is a store that breaks one promise: the one that lie names, the check that must catch it.
// No other check may, but those of also, which fall with it for the reason given.
type liar struct {
	lie   string
	store sessionstore.Store
	also  []string
}

// liars live in memory, so in a bubble of synctest they cost no time.
func liars() []liar {
	return []liar{
		{lie: "a session comes back as it was put", store: &forgetsIssuer{memory.New()}},
		{lie: "times come back to the millisecond", store: &keepsSeconds{memory.New()}},
		{lie: "any text comes back byte for byte", store: &endsAtNUL{memory.New()}},
		{lie: "an id may have 128 bytes, and every one of them counts", store: &mapsIDs{memory.New(), firstHalf}},
		{lie: "ids differ by every character", store: &mapsIDs{memory.New(), lowerCase}},
		{lie: "an id that never was is not found", store: &findsStrangers{Store: memory.New(), known: known{}}},
		{lie: "putting an id again replaces its record", store: &keepsFirstRecord{memory.New()}},
		{lie: "a deleted session is not found", store: &deletesNothing{memory.New()}, also: []string{
			// What was never deleted needs no touch to be there.
			"a touch does not bring a deleted session back",
			"a touch does not bring back a session deleted at the same moment",
		}},
		{lie: "deleting what is not there is not an error", store: &missesWhatIsGone{memory.New()}},
		{lie: "a deleted session can be put again", store: &buriesForEver{Store: memory.New(), known: known{}}},

		{lie: "a session is found until its lifetime is over", store: &livesShort{memory.New()}},
		{lie: "a session is not found once its lifetime is over", store: &livesLong{Store: memory.New(), known: known{}}, also: []string{
			// What never expires needs no touch to be there.
			"a touch does not bring an expired session back",
		}},
		{lie: "putting an id again starts a new lifetime", store: &keepsFirstLifetime{memory.New()}},

		{lie: "a touch sets the time of the last access", store: &glass{touch: lifetimeOnly}, also: []string{"a batch may hold 1,000 sessions"}},
		{lie: "a touch changes nothing else of the record", store: &glass{touch: forgetsClient}},
		{lie: "a touch starts the lifetime anew", store: &glass{touch: timeOnly}},
		{lie: "a touch can shorten a lifetime", store: &glass{touch: neverShortens}},
		{lie: "an older touch does not replace a newer one", store: &glass{touch: trustsClocksSetBack}},
		{lie: "an older touch starts the lifetime anew all the same", store: &glass{touch: ignoresOlder}},
		{lie: "a touch does not bring a deleted session back", store: &glass{touch: revivesDeleted}, also: []string{
			// Of touches at the same moment some come after the Delete.
			"a touch does not bring back a session deleted at the same moment",
		}},
		{lie: "a touch does not bring an expired session back", store: &glass{touch: revivesExpired}},
		{lie: "a touch does not make a session that never was", store: &glass{touch: makesStrangers}},
		{lie: "a batch passes over sessions that do not exist", store: &stopsAtFirstGap{memory.New()}},
		{lie: "a batch may hold 1,000 sessions", store: &takesFiveHundred{memory.New()}},
		{lie: "a batch may hold one session twice", store: &lastOfBatchWins{memory.New()}},
		{lie: "an empty batch is not an error", store: &refusesNothing{memory.New()}},

		{lie: "a put without an id is invalid", store: &takesEmptyID{memory.New()}},
		{lie: "a put with a lifetime that is not positive is invalid", store: &takesAnyLifetime{memory.New()}},
		{lie: "a batch with a lifetime that is not positive is invalid and does nothing", store: &skipsBadTouches{memory.New()}},
		{lie: "a call whose deadline has passed returns", store: &sleepsThroughDeadlines{memory.New()}},

		{lie: "calls may come concurrently", store: &readsOneAtATime{Store: memory.New()}},
		{lie: "of concurrent touches the newest time stays", store: &comparesTooEarly{}},
		{lie: "a touch does not bring back a session deleted at the same moment", store: &looksUpTooEarly{}},
	}
}

func TestEachLiarIsCaughtByItsCheckAndNoUnrelatedOne(t *testing.T) {
	for _, liar := range liars() {
		t.Run(liar.lie, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caught := kit.Failed(kit.Run(t.Context(), cheap(), sessionstoretest.Subject{Store: liar.store}))
				time.Sleep(2 * time.Minute) //nolint:forbidigo // until a liar that sleeps is awake, by the clock of the bubble
				if !slices.Contains(caught, liar.lie) {
					t.Error("the liar was not caught by its check")
				}
				for _, name := range caught {
					if name != liar.lie && !slices.Contains(liar.also, name) {
						t.Errorf("the liar was also caught by: %s", name)
					}
				}
			})
		})
	}
}

// cheap leaves out the checks that need many sessions, and those that look at the same promises more
// closely (lies in lies_test.go prove them).
func cheap() []sessionstoretest.Check {
	return slices.DeleteFunc(sessionstoretest.Checks(), func(c sessionstoretest.Check) bool {
		return overlapping(c.Name) || c.Name == "ids whose hashes collide are distinct" || c.Name == "two thousand sessions are distinct"
	})
}

func TestAnHonestStoreIsNotCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []sessionstore.Store{memory.New(), &glass{touch: honest}} {
			for _, result := range kit.Run(t.Context(), sessionstoretest.Checks(), sessionstoretest.Subject{Store: store}) {
				if result.Err != nil {
					t.Errorf("%T: %s: %v", store, result.Name, result.Err)
				}
			}
		}
	})
}

func overlapping(check string) bool {
	for _, l := range newLies() {
		if l.check == check && check != "calls may come concurrently" {
			return true
		}
	}
	return slices.Contains([]string{
		"every field comes back, long and with every kind of character",
		"a put replaces every field, the time of the last access too",
		"puts and gets of one id at once never mix two records",
		"lifetimes are exact from a second to 30 days",
		"lifetimes after a touch are exact from a second to 30 days",
		"expires_at is the moment when the session ends",
		"a touch that races with the end of a lifetime never brings the session back",
	}, check)
}
