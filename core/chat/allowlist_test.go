package chat

import "testing"

func TestAClassInAPatternIsNegatedAsInGoAndInShells(t *testing.T) {
	for _, pattern := range []string{"files__[^d]*", "files__[!d]*"} {
		if !matches([]string{pattern}, "files__read") || matches([]string{pattern}, "files__delete") {
			t.Errorf("%s does not exclude only files__delete", pattern)
		}
	}
}
