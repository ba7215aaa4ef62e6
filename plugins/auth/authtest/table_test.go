package authtest_test

import (
	"flag"
	"testing"

	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

var update = flag.Bool("update", false, "write the section of docs/kits.md")

func TestTheTableOfTheDocumentIsThatOfTheKitAndEveryCheckHasALie(t *testing.T) {
	var proofs []plugintest.Proof
	for _, l := range append(newLies(), exactLies()...) {
		proofs = append(proofs, plugintest.Proof{Lie: l.what, Check: l.check})
	}
	for check := range liars() {
		proofs = append(proofs, plugintest.Proof{Check: check})
	}
	for _, l := range revocationLies(nil) {
		proofs = append(proofs, plugintest.Proof{Lie: l.what, Check: l.check})
	}
	checks := authtest.Checks(authtest.Subject{Keys: &authtest.Keys{}, Revokes: true})
	plugintest.Proofs(t, "authtest", checks, proofs, *update)
}
