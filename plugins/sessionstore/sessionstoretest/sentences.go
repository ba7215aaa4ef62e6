package sessionstoretest

import (
	"slices"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// The sentences of the contract that failures cite.
const (
	sentenceOrder       = "Each call takes effect on each session at one moment between its request and its response"
	sentenceSeen        = "every later read sees a write that returned OK"
	sentenceSucceeds    = "As long as the backend works, a call that the contract allows succeeds"
	sentenceBack        = "Once a backend works again, calls succeed within 15 seconds"
	sentenceUnavailable = "Any method returns UNAVAILABLE if the backend could not be reached"
	sentenceLate        = "it takes effect before its deadline plus 300 ms, or never"
	sentenceDeadline    = "Each carries a deadline and returns soon after it passes"
	sentenceExact       = "Get returns the record exactly as it was put or replaced (times to the millisecond)"
	sentenceAccessed    = "with the newest last_accessed_at of the touches since"
	sentenceOver        = "NOT_FOUND once the lifetime has ended (not earlier, and at most a second later), after Delete, and for an id that never existed"
	sentenceExpires     = "When the lifetime ends, by the store's clock"
	sentenceOneStep     = "Comparing and writing are one step"
	sentenceNoReplace   = "NOT_FOUND where Get would return it: a Replace never brings a session back"
	sentencePutInvalid  = "INVALID_ARGUMENT for an empty id and for a ttl that is not positive"
	sentenceTouchWrong  = "INVALID_ARGUMENT for a ttl that is not positive; in that case, none of the batch is done"
	sentenceReplWrong   = "INVALID_ARGUMENT for an empty id and for a negative ttl"
	sentenceDurable     = `Such a write survives the end of the process if the plugin has the capability "durable"`
)

// sentenceFor returns the sentence that an answer contradicts, given the possible states of the session, and whether the
// session was touched.
func sentenceFor(worlds []world, op Operation, touched bool) string {
	worlds = slices.DeleteFunc(slices.Clone(worlds), func(w world) bool { return !w.there(op) })
	same := func(compare func(a, b sessionstore.Record) bool) bool {
		return slices.ContainsFunc(worlds, func(w world) bool { return compare(w.record(), op.Got) })
	}
	switch {
	case op.Method == methodReplace && (op.Answer == answerNotFound || len(worlds) == 0):
		return sentenceNoReplace
	case op.Method == methodReplace:
		return sentenceOneStep
	case op.Answer == answerNotFound || len(worlds) == 0:
		return sentenceOver
	case same(func(a, b sessionstore.Record) bool { return a == b }):
		return sentenceExpires
	case touched && same(func(a, b sessionstore.Record) bool {
		return a.Subject == b.Subject && a.LastAccessedAt != millis(b.LastAccessedAt)
	}):
		return sentenceAccessed
	case same(func(a, b sessionstore.Record) bool { return a.Subject == b.Subject }):
		return sentenceExact
	}
	return sentenceSeen
}
