package registrytest

import (
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Check is one promise of a registry.
type Check = kit.Check[Subject]

// Checks is the whole contract, in the order of its .proto file.
func Checks() []Check {
	return slices.Concat(searches(), paging(), resolves(), packages(), fetches(), calls(), more(), near(), knowing(), outages())
}

func searches() []Check {
	return []Check{
		check("an empty search finds at least one bundle", "The text to look for; empty lists everything", findsSomething),
		check("an entry has a name, an exact version, and a trust score of 0 to 100", "0 to 100; 0 when the registry says nothing", entriesAreWhole),
		check("a page holds no more entries than were asked for", "How many entries the page may have, 1 to 100; 0 means 20", pageIsBounded),
		check("a page holds 20 entries at most when no limit was given", "How many entries the page may have, 1 to 100; 0 means 20", pageHasDefault),
		check("a limit out of bounds is invalid", "INVALID_ARGUMENT for a limit over 100", refusesLimit),
		check("the pages of a search hold no bundle twice", "Each bundle is on one page only", pagesDiffer),
		check("the pages of a search hold what one large page holds", "Each bundle is on one page only", pagesAreComplete),
		check("a search for a bundle's name finds it", "a bundle fits its own name", findsByName),
		check("a search that fits nothing is an empty last page", "a text that is in nothing a bundle says of itself fits none", findsNothing),
		check("a search fits the whole text and no part of it", "a text that is in nothing a bundle says of itself fits none", findsTheWholeText),
		check("any text can be searched for", "The text to look for; empty lists everything", takesAnyText),
	}
}

func resolves() []Check {
	return []Check{
		check("what a search found can be resolved", "The name that Resolve understands", resolvesFound),
		check("a bundle that is not there is not found", "NOT_FOUND only after the registry really was asked and has no such bundle or version", unknownName),
		check("a version that is not there is not found", "NOT_FOUND only after the registry really was asked and has no such bundle or version", unknownVersion),
		check("a name that leads elsewhere is not found", "NOT_FOUND only after the registry really was asked and has no such bundle or version", strangeNames),
		check("an empty name is invalid", "INVALID_ARGUMENT for an empty name", refusesEmptyName),
		check("a package has the name that was asked for", "The bundle's name", keepsName),
		check("the latest version is the one that the search named", "The latest version", latestIsLatest),
		check("a package has the version that was asked for", "The answer names an exact version, never a range: the one that was asked for", keepsVersion),
		check("the same name and version resolve to the same package", "the same name and version are the same bytes", resolvesTheSame),
	}
}

func packages() []Check {
	return []Check{
		check("a package is of a known kind", "Not a kind; never sent", kindIsKnown),
		check("a package has what its kind needs", "How it is installed", kindIsWhole),
		check("a package has a trust score of 0 to 100", "0 to 100; 0 when the registry says nothing", packageTrust),
		check("a digest is a sha256 in lower-case hex", "the file's digest in lower-case hex", digestIsHex),
		check("a package's variables have names, each its own", "The variable's name", variablesAreNamed),
		check("a default is one of its variable's choices", "The only values it may have", defaultIsChoice),
	}
}

func fetches() []Check {
	return []Check{
		check("a bundle's bytes have the size and the sha256 that were promised", "the file's length in bytes", bytesAreTrue),
		check("a bundle can be fetched again, byte for byte", "the same name and version are the same bytes", fetchesTheSame),
		check("a package of another kind cannot be fetched", "INVALID_ARGUMENT for packages of another kind", refusesOtherKinds),
		check("an artifact that leads elsewhere is an error", "An artifact is not trusted for having come back: one that Resolve never gave is an error", refusesArtifacts),
		check("a download can be given up", "any other end means that the bytes are not complete", givesUp),
	}
}

func calls() []Check {
	return []Check{
		check("a call whose deadline has passed returns an error", "Calls come concurrently, each with a deadline", returnsInTime),
		check("calls may come concurrently", "Calls come concurrently", concurrentCalls),
	}
}
