package apps

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

func TestThatABundleAsksIsKnownAfterARestart(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	first, _ := realYard(t, home, records, nil)
	install(t, first, InstallRequest{Path: bundleDir(t, "notes", modeTalk, nil)})
	if _, err := askTool(t.Context(), first, "hello", NewClient("alice", false, canElicit), saysWord("red")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, _ := realYard(t, home, records, nil)
	open(t, second)
	got, err := askTool(t.Context(), second, "hello", NewClient("bob", false, canElicit), saysWord("blue"))
	if err != nil {
		t.Fatal(err)
	}
	if shared := fmt.Sprint(look(t, second, "notes").PID); strings.HasSuffix(got, " "+shared) {
		t.Errorf("the shared instance %s asked for bob", shared)
	}
}

func TestWhatIsKeptOfABundleIsItsVersionsOwn(t *testing.T) {
	for asks := ability(1); asks < abilitySamplingTools<<1; asks++ {
		records := newMemoryRecords()
		name, value := habitOf(bundleVersion{"@a/b", "1.0"}, asks)
		records.kept[name] = value
		records.kept[habitPrefix+"broken"] = "{"
		y := New(Options{Records: records, Logger: hclog.NewNullLogger()})
		y.recall(t.Context())
		expect(t, "what it asks", y.memory.of(core.Installation{BundleName: "@a/b", Version: "1.0"}).asks, asks)
		expect(t, "what its next version asks", y.memory.of(core.Installation{BundleName: "@a/b", Version: "1.1"}).asks, ability(0))
	}
}

func TestWhatAnotherServerFoundOutIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryYard(t)
		changes := make(chan core.Change)
		records := y.o.Records.(*memoryRecords)
		name, value := habitOf(bundleVersion{"@a/b", "1.0"}, abilityForm)
		records.mu.Lock()
		records.kept[name] = value
		records.mu.Unlock()
		go y.follow(t.Context(), changes)
		asks := func() ability { return y.memory.of(core.Installation{BundleName: "@a/b", Version: "1.0"}).asks }
		changes <- core.Change{Kind: core.ChangeSetting, Name: "model"}
		synctest.Wait()
		expect(t, "after a change of something else", asks(), ability(0))
		changes <- core.Change{Kind: core.ChangeSetting, Name: name}
		synctest.Wait()
		expect(t, "after the change", asks(), abilityForm)
		close(changes)
	})
}
