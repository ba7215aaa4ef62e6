package sessionstoretest

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Check is one promise of a session store.
type Check = kit.Check[Subject]

// Checks is the whole contract, in the order of its .proto file.
func Checks() []Check {
	return slices.Concat(records(), lifetimes(), touches(), refusals(), remnants(), races(), replaces(), shared(), undoing(), meetings(), outages())
}

// check is a promise that a store alone can be held to.
func check(name, contract string, run func(context.Context, sessionstore.Store) error) Check {
	return Check{Name: name, Contract: contract, Run: func(ctx context.Context, s Subject) error { return run(ctx, s.Store) }}
}

func records() []Check {
	return []Check{
		check("a session comes back as it was put", "Get returns the record exactly as it was put (times to the millisecond)", comesBack),
		check("every field comes back, long and with every kind of character", "Any text may be in any field", fieldsComeBack),
		check("a put replaces every field, the time of the last access too", "Put writes a record under its id, whether or not it exists", replacesEveryField),
		check("times come back to the millisecond", "Get returns the record exactly as it was put (times to the millisecond)", timesComeBack),
		check("times far from now come back, and none comes back as none", "Get returns the record exactly as it was put (times to the millisecond)", farTimesComeBack),
		check("any text comes back byte for byte", "Any text may be in any field", textComesBack),
		check("an id may have 128 bytes, and every one of them counts", "opaque, at least 128 random bits, at most 128 bytes", longIDs),
		check("ids differ by every character", "opaque, at least 128 random bits, at most 128 bytes", similarIDs),
		check("ids whose hashes collide are distinct", "opaque, at least 128 random bits, at most 128 bytes", collidingIDs),
		check("two thousand sessions are distinct", "opaque, at least 128 random bits, at most 128 bytes", manyIDs),
		check("an id that never was is not found", "and for an id that never was", neverWas),
		check("putting an id again replaces its record", "Put writes a record under its id, whether or not it exists", replacesRecord),
		check("a deleted session is not found", "after Delete, and for an id that never was", deletedIsGone),
		check("deleting what is not there is not an error", "Removing what is not there is not an error", deletesNothing),
		check("a deleted session can be put again", "Put writes a record under its id, whether or not it exists", putAfterDelete),
	}
}

func lifetimes() []Check {
	return []Check{
		check("a session is found until its lifetime is over", "NOT_FOUND once the lifetime is over, not before it", livesLongEnough),
		check("a session is not found once its lifetime is over", "NOT_FOUND once the lifetime is over, not before it and at most a second later", expires),
		check("putting an id again starts a new lifetime", "to live for ttl from now", replacesLifetime),
		check("a lifetime that another put or a delete has ended ends nothing", "to live for ttl from now", endedLifetimes),
		check("a session is found until shortly before its lifetime is over", "NOT_FOUND once the lifetime is over, not before it", livesToTheEnd),
		check("lifetimes are exact from a second to 30 days", "Lifetimes of up to 30 days are exact to the second", putExact),
		check("lifetimes after a touch are exact from a second to 30 days", "Lifetimes of up to 30 days are exact to the second", touchExact),
		check("expires_at is the moment when the session ends", "When the lifetime is over, by the clock of the store", expiryIsTrue),
	}
}

func touches() []Check {
	return []Check{
		check("a touch sets the time of the last access", "Touch sets last_accessed_at and starts the lifetime anew", touchSetsTime),
		check("a touch changes nothing else of the record", "Get returns the record exactly as it was put (times to the millisecond)", touchKeepsRecord),
		check("a touch starts the lifetime anew", "Touch sets last_accessed_at and starts the lifetime anew", touchProlongs),
		check("a touch can shorten a lifetime", "starts the lifetime anew for each session of the batch that exists", touchShortens),
		check("an older touch does not replace a newer one", "An older last_accessed_at never replaces a newer one", touchIsMonotonic),
		check("an older touch starts the lifetime anew all the same", "but starts the lifetime anew all the same", olderTouchProlongs),
		check("a touch does not bring a deleted session back", "a Touch never brings a session back", touchAfterDelete),
		check("a touch does not bring an expired session back", "a Touch never brings a session back", touchAfterExpiry),
		check("a touch does not make a session that never was", "Ids that do not exist are passed over", touchNeverWas),
		check("a batch passes over sessions that do not exist", "Ids that do not exist are passed over", touchPassesOver),
		check("a batch may hold 1,000 sessions", "Up to 1,000 sessions", touchThousand),
		check("a batch may hold one session twice", "Where an id comes twice, both entries count, in any order", touchTwice),
		check("an empty batch is not an error", "An empty batch is not an error", touchNothing),
	}
}

func refusals() []Check {
	return []Check{
		check("a put without an id is invalid", "INVALID_ARGUMENT for an empty id and for a ttl that is not positive", refusesEmptyID),
		check("a put with a lifetime that is not positive is invalid", "INVALID_ARGUMENT for an empty id and for a ttl that is not positive", refusesLifetime),
		check("a batch with a lifetime that is not positive is invalid and does nothing", "INVALID_ARGUMENT for a ttl that is not positive; nothing of the batch is then done", refusesTouch),
		check("sessions of a batch that was refused are as they were, and can be touched again", "The sessions of a batch that was refused are as they were, and the next Touch reaches them", recoversFromRefusal),
		check("a call whose deadline has passed returns", "Each carries a deadline and returns soon after it passes", returnsInTime),
	}
}

func races() []Check {
	return []Check{
		check("calls may come concurrently", "Calls come concurrently", concurrentCalls),
		check("of concurrent touches the newest time stays", "An older last_accessed_at never replaces a newer one", concurrentTouches),
		check("a touch does not bring back a session deleted at the same moment", "not even one that is deleted at the same moment", touchRacesDelete),
		check("a touch that races with the end of a lifetime never brings the session back", "a Touch never brings a session back", touchRacesExpiry),
		check("puts and gets of one id at once never mix two records", "Record and lifetime are written as one", putsAreWhole),
	}
}
