package search

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

func TestPostingsAreSplitIntoPages(t *testing.T) {
	all := postings{}
	for _, n := range []int64{1, 65_535, 65_536, 200_000} {
		all.add("a", n)
	}
	all.add("b", 70_000)
	want := map[setKey][]uint32{{"a", 0}: {1, 65_535}, {"a", 1}: {65_536}, {"a", 3}: {200_000}, {"b", 1}: {70_000}}
	got := all.pages()
	for at, numbers := range want {
		if got[at] == nil || !got[at].Equals(roaring.BitmapOf(numbers...)) {
			t.Errorf("%v: %v, want %v", at, got[at], numbers)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d pieces, want %d", len(got), len(want))
	}
}
