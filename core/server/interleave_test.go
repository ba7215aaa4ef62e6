package server

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/tools"
)

func TestTheFirstRegistryDoesNotHideTheOthers(t *testing.T) {
	found := func(registry string, n int) []tools.Found {
		all := make([]tools.Found, n)
		for i := range all {
			all[i] = tools.Found{Registry: registry, Name: string(rune('a' + i))}
		}
		return all
	}
	for _, c := range []struct {
		lists [][]tools.Found
		limit int
		want  string
	}{
		{[][]tools.Found{found("1", 5), found("2", 5), found("3", 1)}, 6, "1a2a3a1b2b1c"},
		{[][]tools.Found{found("1", 1), found("2", 3)}, 10, "1a2a2b2c"},
		{[][]tools.Found{nil, found("2", 2)}, 1, "2a"},
		{nil, 3, ""},
	} {
		got := ""
		for _, f := range interleave(c.lists, c.limit) {
			got += f.Registry + f.Name
		}
		if got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
