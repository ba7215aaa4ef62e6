package audittest

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Check is one promise of an audit sink.
type Check = kit.Check[Subject]

// Checks is the whole contract, in the order of its .proto file. Only what writes megabytes comes last: a sink in
// a file may read them again in every check that follows, and whenever one of its processes starts.
func Checks() []Check {
	return slices.Concat(records(), repeats(), refusals(), streams(), reads(), boundaries(), processes(), outages(), megabytes())
}

func check(name, contract string, run func(context.Context, Subject) error) Check {
	return Check{Name: name, Contract: contract, Run: run}
}

func records() []Check {
	const exactly = "exactly as they were written: any text may be in any field, however long"
	return []Check{
		check("records come back in the order of their batch", "Write keeps records in the order of the batch", comeBack),
		check("every field comes back", exactly, fieldsComeBack),
		check("any text comes back byte for byte", exactly, textComesBack),
		check("empty fields stay empty", exactly, emptyFieldsStay),
		check("times come back to the millisecond", "times are exact to the millisecond", timesComeBack),
		check("arguments come back as the same JSON value", "arguments_json is the same JSON value", argumentsComeBack),
		check("a batch of 1,000 records is kept whole", "Up to 1,000 records, together up to 8 MiB", thousandRecords),
		check("records that differ in nothing but their sequence are all kept", "Records that differ in nothing but their sequence, or in nothing but their stream, are different records", equalRecords),
		check("sequences of up to 62 bits are exact", "A stream may begin with any sequence and leave numbers out", largeSequences),
	}
}

func repeats() []Check {
	const once = "one whose sequence is not higher than that of the last kept record of its stream is passed over"
	return []Check{
		check("a batch that is written again is kept once", once, repeatedBatch),
		check("of a batch that was kept in part the rest is kept", once, overlappingBatch),
		check("a repeat is passed over after 300 other streams, too", once, repeatAfterOthers),
	}
}

func refusals() []Check {
	const invalid = "INVALID_ARGUMENT, and nothing of the batch is kept"
	return []Check{
		check("a batch without a stream is invalid", invalid, refusesNoStream),
		check("a batch whose sequences are zero or do not ascend is invalid, and nothing of it is kept", invalid, refusesDisorder),
		check("records of a batch that was refused are kept when they come again in a good one", "are kept when they come again in a batch that is good", keepsRefused),
		check("an empty batch is not an error", "An empty batch is not an error", emptyBatch),
		check("a write whose deadline has passed returns", "Each carries a deadline and returns soon after it passes", returnsInTime),
	}
}

func streams() []Check {
	return []Check{
		check("streams with the same sequences are apart", "Records that differ in nothing but their sequence, or in nothing but their stream, are different records", streamsAreApart),
		check("streams differ by every character of up to 128 bytes", "opaque, at most 128 bytes", similarStreams),
		check("records that mention another stream stay in their own", "Read returns the kept records of a stream whose sequence is higher than a given one", mentionsAnother),
		check("concurrent writes of several streams lose and mix nothing", "Calls come concurrently, those of one stream one after the other", concurrentStreams),
	}
}

func reads() []Check {
	return []Check{
		check("a stream that is not known has no records", "A stream that is not known has no records, which is not an error", unknownStream),
		check("a read begins after the given sequence and has at most the given number", "The answer may have fewer, but has at least one if there is one", readsPages),
	}
}

func processes() []Check {
	const durable = "it survives the end of the process at any moment"
	return []Check{
		check("records that were acknowledged survive kill -9", durable, survivesKill),
		check("records that were acknowledged survive the end of the process", durable, survivesShutdown),
		check("a batch that is written again after kill -9 is kept once", "This holds across restarts for a sink that has the capability", repeatAfterKill),
		check("another process sees records as soon as they are acknowledged", "A record is there as soon as its Write was answered, in every process of the sink", seenAtOnce),
		check("two processes that write at the same time lose nothing", "Several servers may write to one sink, each its own stream", twoProcesses),
	}
}

func outages() []Check {
	return []Check{
		check("a write without its backend is unavailable", "UNAVAILABLE when the records could not be kept now", writeIsUnavailable),
		check("a write to a backend that does not answer returns by its deadline", "Each carries a deadline and returns soon after it passes", returnsByDeadline),
		check("what could not be written is kept once the backend is back", "After any other answer each record of the batch may or may not have been kept, and the server writes it again", keptAfterwards),
	}
}
