package registrytest

import (
	"slices"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// Check is one promise of a registry.
type Check = kit.Check[registry.Registry]

// Checks is the whole contract, in the order of registry.Registry.
func Checks() []Check { return slices.Concat(searches(), resolves(), packages(), fetches(), calls()) }

func searches() []Check {
	return []Check{
		{Name: "an empty search finds at least one bundle", Run: findsSomething},
		{Name: "an entry has a name, an exact version, and a trust score of 0 to 100", Run: entriesAreWhole},
		{Name: "a page holds no more entries than were asked for", Run: pageIsBounded},
		{Name: "a page holds 20 entries at most when no limit was given", Run: pageHasDefault},
		{Name: "a limit out of bounds is invalid", Run: refusesLimit},
		{Name: "the pages of a search hold no bundle twice", Run: pagesDiffer},
		{Name: "the pages of a search hold what one large page holds", Run: pagesAreComplete},
		{Name: "a search for a bundle's name finds it", Run: findsByName},
		{Name: "a search that fits nothing is an empty last page", Run: findsNothing},
	}
}

func resolves() []Check {
	return []Check{
		{Name: "what a search found can be resolved", Run: resolvesFound},
		{Name: "a bundle that is not there is not found", Run: unknownName},
		{Name: "a version that is not there is not found", Run: unknownVersion},
		{Name: "a name that leads elsewhere is not found", Run: strangeNames},
		{Name: "an empty name is invalid", Run: refusesEmptyName},
		{Name: "a package has the name that was asked for", Run: keepsName},
		{Name: "the latest version is the one that the search named", Run: latestIsLatest},
		{Name: "a package has the version that was asked for", Run: keepsVersion},
		{Name: "the same name and version resolve to the same package", Run: resolvesTheSame},
	}
}

func packages() []Check {
	return []Check{
		{Name: "a package is of a known kind", Run: kindIsKnown},
		{Name: "a package has what its kind needs", Run: kindIsWhole},
		{Name: "a package has a trust score of 0 to 100", Run: packageTrust},
		{Name: "a digest is a sha256 in lower-case hex", Run: digestIsHex},
		{Name: "a package's variables have names, each its own", Run: variablesAreNamed},
		{Name: "a default is one of its variable's choices", Run: defaultIsChoice},
	}
}

func fetches() []Check {
	return []Check{
		{Name: "a bundle's bytes have the size and the sha256 that were promised", Run: bytesAreTrue},
		{Name: "a bundle can be fetched again, byte for byte", Run: fetchesTheSame},
		{Name: "a package of another kind cannot be fetched", Run: refusesOtherKinds},
		{Name: "an artifact that leads elsewhere is an error", Run: refusesArtifacts},
		{Name: "a download can be given up", Run: givesUp},
	}
}

func calls() []Check {
	return []Check{
		{Name: "a call whose deadline has passed returns an error", Run: returnsInTime},
		{Name: "calls may come concurrently", Run: concurrentCalls},
	}
}
