package chat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func TestMarkdownIsRenderedRegardlessOfItsChunks(t *testing.T) {
	cases := []struct{ name, markdown, want string }{
		{"heading", "## The `x` option\n", "<b>The <c>x</c> option</>\n"},
		{"emphasis", "It is **very** important, *really*, and ~~not~~ over.\n", "It is <b>very</> important, <i>really</i>, and <f>not</> over.\n"},
		{"words with underscores", "the value of max_open_files and of a_b is 2 * 3\n", "the value of max_open_files and of a_b is 2 * 3\n"},
		{"emphasis across words", "one **two three four five six** seven\n", "one <b>two three four five six</> seven\n"},
		{"code", "run `ropewalk **up**` now, please do\n", "run <c>ropewalk **up**</c> now, please do\n"},
		{"link", "see [the guide](https://example.com/a) and <https://example.com/b> for it\n", "see <u>the guide</u> (https://example.com/a) and <u>https://example.com/b</u> for it\n"},
		{"items", "- the first of all items\n  - *nested* item of the list\n3. the third - and last\n", "• the first of all items\n  • <i>nested</i> item of the list\n3. the third - and last\n"},
		{"quote", "> said by somebody else\n", "<f>│ </><f>said by somebody else</>\n"},
		{"block of code", "```go\n# not *a* heading\n\n```\nafter\n", "<f>```go</>\n<c># not *a* heading</c>\n\n<f>```</>\nafter\n"},
		{"longer fence", "````\n```\n````\n", "<f>````</>\n<c>```</c>\n<f>````</>\n"},
		{"rule", "---\n", "<f>" + strings.Repeat("─", 40) + "</>\n"},
		{"table", "| a | **b** |\n|---|---|\n", "| a | **b** |\n|---|---|\n"},
		{"escapes", "a \\*star\\* and this text\n", "a *star* and this text\n"},
		{"unclosed marker", "the *star is alone on its line\nand **this\n", "the *star is alone on its line\nand **this\n"},
		{"no end of line", "a paragraph of several words that **does not end", "a paragraph of several words that **does not end\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.markdown); size++ {
				if got := rendered(t, c.markdown, size); got != c.want {
					t.Fatalf("in pieces of %d:\n%q, want\n%q", size, got, c.want)
				}
			}
		})
	}
}

func TestAParagraphIsWrittenBeforeItEnds(t *testing.T) {
	var screen bytes.Buffer
	m := &markdown{out: cli.Styled(&screen)}
	if err := m.write("A paragraph that is **still being** writ"); err != nil {
		t.Fatal(err)
	}
	if got := plain(screen.String()); got != "A paragraph that is <b>still being</>" {
		t.Errorf("%q is on the screen", got)
	}
}

func TestControlCharactersInAnAnswerDoNotReachTheTerminal(t *testing.T) {
	got := cli.Printable("a\x1b]52;c;eA==\x07b\u202ec\u009bd\r\n\t\U0001f469\u200d\U0001f4bb")
	if want := "a\ufffd]52;c;eA==\ufffdb\ufffdc\ufffdd\n\t\U0001f469\u200d\U0001f4bb"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// rendered writes the text in pieces of size bytes, and returns the result.
func rendered(t *testing.T, text string, size int) string {
	t.Helper()
	var screen bytes.Buffer
	m := &markdown{out: cli.Styled(&screen)}
	for len(text) > 0 {
		n := min(size, len(text))
		if err := m.write(text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if m.open() {
		if err := m.endLine(); err != nil {
			t.Fatal(err)
		}
	}
	return plain(screen.String())
}

// plain makes terminal escape sequences readable.
func plain(text string) string {
	return strings.NewReplacer(
		"\x1b[1m", "<b>", "\x1b[3m", "<i>", "\x1b[23m", "</i>", "\x1b[4m", "<u>", "\x1b[24m", "</u>",
		"\x1b[36m", "<c>", "\x1b[39m", "</c>", "\x1b[2m", "<f>", "\x1b[22m", "</>",
	).Replace(text)
}
