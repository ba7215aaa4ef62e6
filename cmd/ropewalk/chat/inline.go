package chat

import (
	"strings"

	"github.com/russross/blackfriday/v2"
)

// inline renders the emphasis, code and links in a piece of a line. Surrounding spaces are kept.
func (m *markdown) inline(text string) string {
	words := strings.TrimSpace(text)
	if words == "" {
		return text
	}
	before, after, _ := strings.Cut(text, words)
	parser := blackfriday.New(blackfriday.WithExtensions(
		blackfriday.NoIntraEmphasis | blackfriday.Strikethrough | blackfriday.Autolink | blackfriday.SpaceHeadings))
	paragraph := parser.Parse([]byte(words)).FirstChild
	if paragraph == nil || paragraph.Type != blackfriday.Paragraph || paragraph.Next != nil {
		return text // text in the middle of a line that looks like the start of a list or of code
	}
	return before + m.children(paragraph) + after
}

func (m *markdown) children(n *blackfriday.Node) string {
	var b strings.Builder
	for child := n.FirstChild; child != nil; child = child.Next {
		b.WriteString(m.node(child))
	}
	return b.String()
}

func (m *markdown) node(n *blackfriday.Node) string {
	text := string(n.Literal) + m.children(n)
	switch n.Type { //nolint:exhaustive // the others have no style
	case blackfriday.Strong:
		return m.out.Bold(text)
	case blackfriday.Emph:
		return m.out.Italic(text)
	case blackfriday.Code:
		return m.out.Code(text)
	case blackfriday.Del:
		return m.out.Faint(text)
	case blackfriday.Link, blackfriday.Image:
		to := string(n.Destination)
		switch text {
		case to, strings.TrimPrefix(to, "mailto:"), "":
			return m.out.Underline(to)
		}
		return m.out.Underline(text) + " (" + to + ")"
	}
	return text
}
