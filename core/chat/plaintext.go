package chat

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/russross/blackfriday/v2"
)

var (
	// beginning matches what Markdown would read as a list marker at the start of some text, as in "1. FC" and "+ 1".
	beginning = regexp.MustCompile(`^\s*(?:\d+[.)]|\+)[ \t]+`)
	// tag matches HTML formatting tags and comments. Anything else between < and > is text, as in List<int>.
	tag = regexp.MustCompile(`(?is)<!--.*?-->|</?(?:a|b|big|blockquote|center|code|del|div|em|font|h[1-6]|hr|html|body|head|title|i|img|ins|kbd|li|mark|ol|p|pre|` +
		`q|s|small|span|strike|strong|sub|sup|tt|u|ul)(?:\s[^<>]*)?/?>`)
	lineBreak = regexp.MustCompile(`(?i)<br\s*/?>`)
	// ambiguous matches code, which is left alone; link reference definitions at the start of a line; and possible
	// emphasis with underscores.
	ambiguous = regexp.MustCompile("(?m)`+[^`]*`+|^ {0,3}\\[[^\\]\n]+\\]:|_{1,3}[^\\s_](?:[^\n_]*[^\\s_])?_{1,3}")
)

// untagged returns text without HTML tags; <br> becomes a space.
func untagged(html string) string {
	return tag.ReplaceAllLiteralString(lineBreak.ReplaceAllLiteralString(html, " "), "")
}

// escaped escapes Markdown that is meant literally: brackets as in "[Fix]: login", and underscores inside names.
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

// withinName reports whether the text between before and after is part of a word, a path or a file name.
func withinName(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, size := utf8.DecodeRuneInString(after)
	beyond, _ := utf8.DecodeRuneInString(after[size:])
	return isWordly(last) || strings.ContainsRune("/.-", last) || isWordly(next) ||
		strings.ContainsRune("/.-:(", next) && (isWordly(beyond) || strings.ContainsRune("_)", beyond))
}

// plainText returns text without Markdown and HTML markup. Only the words of a link remain, and each block ends with
// a line break.
func plainText(markdown string) string {
	first := beginning.FindString(markdown)
	var b strings.Builder
	b.WriteString(first)
	parser := blackfriday.New(blackfriday.WithExtensions(
		blackfriday.NoIntraEmphasis | blackfriday.Strikethrough | blackfriday.Autolink | blackfriday.SpaceHeadings | blackfriday.FencedCode))
	parser.Parse([]byte(escaped(markdown[len(first):]))).Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		switch n.Type { // the other types have no text
		case blackfriday.Softbreak, blackfriday.Hardbreak:
			b.WriteByte('\n')
		case blackfriday.Paragraph, blackfriday.Heading, blackfriday.CodeBlock:
			b.Write(n.Literal)
			if !entering || n.Type == blackfriday.CodeBlock { // a code block is only entered, never left
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

// reasoning matches the reasoning that some models write before their answer. It has no closing tag if the answer was
// cut off.
var reasoning = regexp.MustCompile(`(?is)^\s*<(?:think|thinking|reasoning)>.*?(?:</(?:think|thinking|reasoning)>|\z)`)

// plainTitle returns the first line of a model's answer as plain text, at most length characters, without surrounding
// quotation marks.
func plainTitle(text string, length int) string {
	text = strings.TrimSpace(reasoning.ReplaceAllLiteralString(text, ""))
	title := firstLine(plainText(text))
	if line := firstLine(text); title == "" && strings.ContainsFunc(line, isWordly) { // nothing left but markup
		title = firstLine(untagged(line))
	}
	return strings.TrimSpace(head(title, length))
}

// firstLine returns the first non-blank line of text, without surrounding quotation marks or a final period.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.Trim(strings.TrimSpace(first), "\"'“”‘’«»„` "), "."))
}

func isWordly(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// head returns the first n characters of text.
func head(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}
