package registrytest_test

import (
	"flag"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

var update = flag.Bool("update", false, "write the section of docs/kits.md")

func TestTheTableOfTheDocumentIsThatOfTheKitAndEveryCheckHasALie(t *testing.T) {
	var proofs []plugintest.Proof
	for what, l := range newLies() {
		proofs = append(proofs, plugintest.Proof{Lie: what, Check: l.check})
	}
	for what, l := range outageLies() {
		proofs = append(proofs, plugintest.Proof{Lie: what, Check: l.check})
	}
	for what, l := range wireLies() {
		proofs = append(proofs, plugintest.Proof{Lie: what, Check: l.check})
	}
	for _, l := range liars() {
		proofs = append(proofs, plugintest.Proof{Check: l.lie})
	}
	plugintest.Proofs(t, "registrytest", registrytest.Checks(), proofs, *update)
}
