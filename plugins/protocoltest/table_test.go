package protocoltest_test

import (
	"flag"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
)

var update = flag.Bool("update", false, "write the section of docs/kits.md")

func TestTheTableOfTheDocumentIsThatOfTheKitAndEveryCheckHasALie(t *testing.T) {
	var proofs []plugintest.Proof
	for what, check := range lies() {
		proofs = append(proofs, plugintest.Proof{Lie: what, Check: check})
	}
	plugintest.Proofs(t, "protocoltest", protocoltest.Checks(), proofs, *update)
}
