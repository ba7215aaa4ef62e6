package chat

import (
	"testing"
)

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
		"[Fix]: login":                      "[Fix]: login",
		"[Fix]: login\nThe rest":            "[Fix]: login",
		"[Fix] login":                       "[Fix] login",
		"[]: x":                             "[]: x",
		"<b>Bold</b> title":                 "Bold title",
		"<h1 class=\"x\">Title</h1>":        "Title",
		"<!-- x -->\nTitle":                 "Title",
		"A<br/>title":                       "A title",
		"List<int> and <T>":                 "List<int> and <T>",
		"`<b>` and `__x__`":                 "<b> and __x__",
		"<think>hm</think>\nTitle":          "Title",
		"<think>\nhm\n\nhm\n</think>\n\n**Title**": "Title",
		"<think>hm, the title":                     "",
		"Debug __init__.py":                        "Debug __init__.py",
		"Debug src/__init__/__main__.py":           "Debug src/__init__/__main__.py",
		"Debug `__init__.py`":                      "Debug __init__.py",
		"Call __init__()":                          "Call __init__()",
		"Debug my__private__var":                   "Debug my__private__var",
		"The route _id_.tsx":                       "The route _id_.tsx",
		"__Title__":                                "Title",
		"__A title__.":                             "A title",
		"_Slanted_: a title":                       "Slanted: a title",
		"+ 1 equals 2":                             "+ 1 equals 2",
		"***":                                      "",
		"":                                         "",
	} {
		if got := plainTitle(answer, 80); got != want {
			t.Errorf("%q gives the title %q, want %q", answer, got, want)
		}
	}
}
