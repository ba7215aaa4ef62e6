package core_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestURIsAreNormalizedForComparison(t *testing.T) {
	for uri, want := range map[string]string{
		"":                         "",
		"zone://utc":               "zone://utc",
		"notes://café/日本":          "notes://caf%C3%A9/%E6%97%A5%E6%9C%AC",
		"notes://caf%c3%a9":        "notes://caf%C3%A9",
		"notes://%61%7E%2D%30":     "notes://a~-0",
		"notes://a%2fb%20c":        "notes://a%2Fb%20c",
		"notes://100%":             "notes://100%",
		"notes://%4":               "notes://%4",
		"notes://%zz%4x":           "notes://%zz%4x",
		"notes://é/{id}{?a,b}":     "notes://%C3%A9/{id}{?a,b}",
		"notes://%25C3%25A9":       "notes://%25C3%25A9",
		"UI://Case/Is/Left?q=%41b": "UI://Case/Is/Left?q=Ab",
	} {
		got := core.NormalizeURI(uri)
		if got != want {
			t.Errorf("%q becomes %q, want %q", uri, got, want)
		}
		if again := core.NormalizeURI(got); again != got {
			t.Errorf("%q becomes %q when it is normalized again", got, again)
		}
	}
}

func TestABrowserMayOnlyBeSentToAPathOnThisServer(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/apps?x=1#y": true, "": false, "apps": false, "//evil.example": false, `/\evil.example`: false,
		"https://evil.example": false, "/\t/evil.example": false, "/a\r\nSet-Cookie: x": false, "javascript:alert(1)": false,
	} {
		if got := core.LocalPath(path); got != want {
			t.Errorf("LocalPath(%q) = %v, want %v", path, got, want)
		}
	}
}
