package rawjson

import (
	"slices"
	"testing"
)

func TestLoneSurrogatesAreFound(t *testing.T) {
	for text, want := range map[string][]string{
		`{"a":"plain \u00e9 \n"}`:          nil,
		`"\ud83d\ude00"`:                   nil,
		`"\ud83d"`:                         {"d83d"},
		`"\uDE00\uD83D"`:                   {"DE00", "D83D"},
		`"\ud83d\ud83d\ude00"`:             {"d83d"},
		`"\ud83dx\ude00"`:                  {"d83d", "de00"},
		`"\\ud83d \"\\\ud83d"`:             {"d83d"},
		`{"\udc00":["\ud800\n"],"b":"\\"}`: {"dc00", "d800"},
	} {
		if got := LoneSurrogates([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
