package chat

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/russross/blackfriday/v2"
)

var (
	// beginning is what Markdown takes at the beginning of a text for the marker of an item, as in "1. FC" and "+ 1".
	beginning = regexp.MustCompile(`^\s*(?:\d+[.)]|\+)[ \t]+`)
	// tag is a tag of HTML that formats text, and a comment. What else stands between < and > is text, as in List<int>.
	tag = regexp.MustCompile(`(?is)<!--.*?-->|</?(?:a|b|big|blockquote|center|code|del|div|em|font|h[1-6]|hr|html|body|head|title|i|img|ins|kbd|li|mark|ol|p|pre|` +
		`q|s|small|span|strike|strong|sub|sup|tt|u|ul)(?:\s[^<>]*)?/?>`)
	lineBreak = regexp.MustCompile(`(?i)<br\s*/?>`)
	// ambiguous is code, which stays; what begins a line as the target of links does; and what may be emphasized.
	ambiguous = regexp.MustCompile("(?m)`+[^`]*`+|^ {0,3}\\[[^\\]\n]+\\]:|_{1,3}[^\\s_](?:[^\n_]*[^\\s_])?_{1,3}")
)

// untagged is a text without tags; a line break within it becomes a space.
func untagged(html string) string {
	return tag.ReplaceAllLiteralString(lineBreak.ReplaceAllLiteralString(html, " "), "")
}

// escaped is a Markdown text in which the brackets of "[Fix]: login" and the underscores within names are text.
func escaped(markdown string) string {
	var b strings.Builder
	end := 0
	for _, at := range ambiguous.FindAllStringIndex(markdown, -1) {
		found := markdown[at[0]:at[1]]
		b.WriteString(markdown[end:at[0]])
		end = at[1]
		switch {
		case found[0] == '_' && withinName(markdown[:at[0]], markdown[at[1]:]):
			found = strings.ReplaceAll(found, "_", `\_`)
		case found[0] != '_' && found[0] != '`':
			found = strings.Replace(found, "[", `\[`, 1)
		}
		b.WriteString(found)
	}
	b.WriteString(markdown[end:])
	return b.String()
}

// withinName reports whether what stands between two texts is a part of a word, a path or the name of a file.
func withinName(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, size := utf8.DecodeRuneInString(after)
	beyond, _ := utf8.DecodeRuneInString(after[size:])
	return isWordly(last) || strings.ContainsRune("/.-", last) || isWordly(next) ||
		strings.ContainsRune("/.-:(", next) && (isWordly(beyond) || strings.ContainsRune("_)", beyond))
}

// plainText is a text without the markers of Markdown and the tags of HTML: of links the words, of blocks the lines.
func plainText(markdown string) string {
	first := beginning.FindString(markdown)
	var b strings.Builder
	b.WriteString(first)
	parser := blackfriday.New(blackfriday.WithExtensions(
		blackfriday.NoIntraEmphasis | blackfriday.Strikethrough | blackfriday.Autolink | blackfriday.SpaceHeadings | blackfriday.FencedCode))
	parser.Parse([]byte(escaped(markdown[len(first):]))).Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		switch n.Type { // the others have no text of their own
		case blackfriday.Softbreak, blackfriday.Hardbreak:
			b.WriteByte('\n')
		case blackfriday.Paragraph, blackfriday.Heading, blackfriday.CodeBlock:
			b.Write(n.Literal)
			if !entering || n.Type == blackfriday.CodeBlock { // a block of code is entered, not left
				b.WriteByte('\n')
			}
		case blackfriday.HTMLSpan, blackfriday.HTMLBlock:
			b.WriteString(untagged(string(n.Literal)))
		default:
			if entering {
				b.Write(n.Literal)
			}
		}
		return blackfriday.GoToNext
	})
	return b.String()
}

// reasoning is what some models write before their answer; it has no end when the answer was cut.
var reasoning = regexp.MustCompile(`(?is)^\s*<(?:think|thinking|reasoning)>.*?(?:</(?:think|thinking|reasoning)>|\z)`)

// Title is the first line of a model's answer as plain text, of at most so many characters, without quotation marks
// around it.
func plainTitle(text string, length int) string {
	text = strings.TrimSpace(reasoning.ReplaceAllLiteralString(text, ""))
	title := firstLine(plainText(text))
	if line := firstLine(text); title == "" && strings.ContainsFunc(line, isWordly) { // nothing but markers
		title = firstLine(untagged(line))
	}
	return strings.TrimSpace(head(title, length))
}

// firstLine is the first line of a text that has one, without quotation marks around it and a full stop.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.Trim(strings.TrimSpace(first), "\"'“”‘’«»„` "), "."))
}

func isWordly(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// Head is the first n characters of a text.
func head(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}
