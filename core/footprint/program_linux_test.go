package footprint

import (
	"slices"
	"strings"
	"testing"
)

func TestOnlyMappingsOfTheProgramThatHoldNothingOfOurOwnAreReleased(t *testing.T) {
	smaps := strings.Join([]string{
		"00400000-00500000 r-xp 00000000 fe:00 1   /opt/rope walk", "Rss:  4 kB", "Anonymous:             0 kB", "VmFlags: rd ex",
		"00500000-00600000 r--p 00100000 fe:00 1   /opt/rope walk", "Anonymous:             8 kB", // relocations
		"00600000-00700000 rw-p 00200000 fe:00 1   /opt/rope walk", "Anonymous:             0 kB",
		"00700000-00800000 r--p 00000000 fe:00 2   /lib/libc.so", "Anonymous:             0 kB",
		"00800000-00900000 r--p 00300000 fe:00 1   /opt/rope walk", "Anonymous:             0 kB",
		"00900000-00a00000 r--p 00000000 00:00 0 ", "Anonymous:             0 kB",
	}, "\n")
	want := []mapping{{0x400000, 0x500000}, {0x800000, 0x900000}}
	if got := clean(strings.NewReader(smaps), "/opt/rope walk"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}
