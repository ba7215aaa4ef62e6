package apps

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestTheCapabilitiesOfABundleAreKnownAfterARestart(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	first, _ := realManager(t, home, records, nil)
	install(t, first, source.Request{Path: bundleDir(t, "notes", modeTalk, nil)})
	if _, err := askTool(t.Context(), first, "hello", interact.NewClient("alice", false, canElicit), saysWord("red")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, _ := realManager(t, home, records, nil)
	open(t, second)
	got, err := askTool(t.Context(), second, "hello", interact.NewClient("bob", false, canElicit), saysWord("blue"))
	if err != nil {
		t.Fatal(err)
	}
	if shared := fmt.Sprint(look(t, second, "notes").PID); strings.HasSuffix(got, " "+shared) {
		t.Errorf("the shared instance %s served bob", shared)
	}
}
