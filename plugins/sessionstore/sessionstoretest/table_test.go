package sessionstoretest_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

var update = flag.Bool("update", false, "write the section of docs/kits.md")

func TestTheTableOfTheDocumentIsThatOfTheKitAndEveryCheckHasALie(t *testing.T) {
	proofs := []plugintest.Proof{{Lie: "compares owners before it writes, not in one step", Check: replacesApart}}
	for _, l := range slices.Concat(lies(), edgeLies(), newLies()) {
		proofs = append(proofs, plugintest.Proof{Lie: l.what, Check: l.check})
	}
	for _, l := range append(liars(), replaceLiars()...) {
		proofs = append(proofs, plugintest.Proof{Check: l.lie})
	}
	plugintest.Proofs(t, "sessionstoretest", sessionstoretest.Checks(), proofs, *update)
}
