package apps

import (
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestTheInstructionsOfRunningAppsAreKnown(t *testing.T) {
	far := remoteServer(t, "", "", false)
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), private)
	install(t, y, source.Request{Path: bundleDir(t, "@test/plain", modeNormal, nil)})
	install(t, y, source.Request{Path: bundleDir(t, "@test/fresh", modeNew, nil)})
	install(t, y, source.Request{URL: far.URL + "/far"})
	expect(t, "instructions of all apps", fmt.Sprint(y.Instructions(ws)), "[{far Call echo first.} {fresh Call word.} {plain Call echo first.}]")
	expect(t, "instructions of another workspace", len(y.Instructions("ws_other")), 0)
	if _, err := y.Stop(t.Context(), ws, "plain"); err != nil {
		t.Fatal(err)
	}
	expect(t, "instructions of the running apps", fmt.Sprint(y.Instructions(ws)), "[{far Call echo first.} {fresh Call word.}]")
	if _, err := y.Start(t.Context(), ws, "plain"); err != nil {
		t.Fatal(err)
	}
	expect(t, "instructions after a start", len(y.Instructions(ws)), 3)
}
