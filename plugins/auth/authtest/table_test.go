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
	for _, l := range allLies() {
		proofs = append(proofs, plugintest.Proof{Lie: l.what, Check: l.check})
	}
	for check := range liars() {
		proofs = append(proofs, plugintest.Proof{Check: check})
	}
	for _, l := range revocationLies(nil) {
		proofs = append(proofs, plugintest.Proof{Lie: l.what, Check: l.check})
	}
	checks := authtest.Checks(authtest.Subject{Keys: &authtest.Keys{}, Revokes: true, Rechecks: true, Binds: true})
	for _, c := range authtest.Checks(authtest.Subject{}) {
		if c.Name == undeclared {
			checks = append(checks, c)
		}
	}
	plugintest.Proofs(t, "authtest", checks, proofs, *update)
}
