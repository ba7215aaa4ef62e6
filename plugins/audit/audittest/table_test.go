package audittest_test

import (
	"flag"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

var update = flag.Bool("update", false, "write the section of docs/kits.md")

func TestTheTableOfTheDocumentIsThatOfTheKitAndEveryCheckHasALie(t *testing.T) {
	var proofs []plugintest.Proof
	for _, l := range lies() {
		proofs = append(proofs, plugintest.Proof{Lie: l.what, Check: l.check})
	}
	plugintest.Proofs(t, "audittest", audittest.Checks(), proofs, *update)
}
