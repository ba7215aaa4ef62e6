package chat

import "testing"

func TestAGeneratedTitleIsOneLineOfPlainText(t *testing.T) {
	for answer, want := range map[string]string{
		"Plain words":                       "Plain words",
		"**Title**":                         "Title",
		"# Title":                           "Title",
		"## Title ##":                       "Title",
		"\"A title\"":                       "A title",
		"“A title.”":                        "A title",
		"**\"A title\"**":                   "A title",
		"The **bold** and *slanted* `code`": "The bold and slanted code",
		"`config check` fails":              "config check fails",
		"- Title":                           "Title",
		"> Title":                           "Title",
		"[A guide](https://example.com)":    "A guide",
		"~~Old~~ new":                       "Old new",
		"```\nTitle\n```":                   "Title",
		"\n\n# Title\n\nBecause you asked.": "Title",
		"The value of max_open_files":       "The value of max_open_files",
		"What 2 * 3 is":                     "What 2 * 3 is",
		"1. FC Union":                       "1. FC Union",
		"C# and F#":                         "C# and F#",
		"#hashtag":                          "#hashtag",
		"Escapes \\*here\\*":                "Escapes *here*",
		"***":                               "",
		"":                                  "",
	} {
		if got := cleanTitle(answer); got != want {
			t.Errorf("%q gives the title %q, want %q", answer, got, want)
		}
	}
}
