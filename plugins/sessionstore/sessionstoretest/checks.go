package sessionstoretest

import (
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Check is one promise of a session store.
type Check = kit.Check[sessionstore.Store]

// Checks is the whole contract, in the order of sessionstore.Store.
func Checks() []Check {
	return slices.Concat(records(), lifetimes(), touches(), refusals(), races())
}

func records() []Check {
	return []Check{
		{Name: "a session comes back as it was put", Run: comesBack},
		{Name: "times come back to the millisecond", Run: timesComeBack},
		{Name: "any text comes back byte for byte", Run: textComesBack},
		{Name: "an id may have 128 bytes, and every one of them counts", Run: longIDs},
		{Name: "ids are told apart by every character", Run: similarIDs},
		{Name: "an id that never was is not found", Run: neverWas},
		{Name: "putting an id again replaces its record", Run: replacesRecord},
		{Name: "a deleted session is not found", Run: deletedIsGone},
		{Name: "deleting what is not there is not an error", Run: deletesNothing},
		{Name: "a deleted session can be put again", Run: putAfterDelete},
	}
}

func lifetimes() []Check {
	return []Check{
		{Name: "a session is found until its lifetime is over", Run: livesLongEnough},
		{Name: "a session is not found once its lifetime is over", Run: expires},
		{Name: "putting an id again starts a new lifetime", Run: replacesLifetime},
	}
}

func touches() []Check {
	return []Check{
		{Name: "a touch sets the time of the last access", Run: touchSetsTime},
		{Name: "a touch changes nothing else of the record", Run: touchKeepsRecord},
		{Name: "a touch starts the lifetime anew", Run: touchProlongs},
		{Name: "a touch can shorten a lifetime", Run: touchShortens},
		{Name: "an older touch does not replace a newer one", Run: touchIsMonotonic},
		{Name: "an older touch starts the lifetime anew all the same", Run: olderTouchProlongs},
		{Name: "a touch does not bring a deleted session back", Run: touchAfterDelete},
		{Name: "a touch does not bring an expired session back", Run: touchAfterExpiry},
		{Name: "a touch does not make a session that never was", Run: touchNeverWas},
		{Name: "a batch passes over sessions that do not exist", Run: touchPassesOver},
		{Name: "a batch may hold 1,000 sessions", Run: touchThousand},
		{Name: "a batch may hold one session twice", Run: touchTwice},
		{Name: "an empty batch is not an error", Run: touchNothing},
	}
}

func refusals() []Check {
	return []Check{
		{Name: "a put without an id is invalid", Run: refusesEmptyID},
		{Name: "a put with a lifetime that is not positive is invalid", Run: refusesLifetime},
		{Name: "a batch with a lifetime that is not positive is invalid and does nothing", Run: refusesTouch},
		{Name: "a call whose deadline has passed returns", Run: returnsInTime},
	}
}

func races() []Check {
	return []Check{
		{Name: "calls may come concurrently", Run: concurrentCalls},
		{Name: "of concurrent touches the newest time stays", Run: concurrentTouches},
		{Name: "a touch does not bring back a session deleted at the same moment", Run: touchRacesDelete},
	}
}
