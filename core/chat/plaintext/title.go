package plaintext

import (
	"regexp"
	"strings"
	"unicode"
)

// reasoning is what some models write before their answer; it has no end when the answer was cut.
var reasoning = regexp.MustCompile(`(?is)^\s*<(?:think|thinking|reasoning)>.*?(?:</(?:think|thinking|reasoning)>|\z)`)

// Title is the first line of a model's answer as plain text, of at most so many characters, without quotation marks
// around it.
func Title(text string, length int) string {
	text = strings.TrimSpace(reasoning.ReplaceAllLiteralString(text, ""))
	title := firstLine(plainText(text))
	if line := firstLine(text); title == "" && strings.ContainsFunc(line, isWordly) { // nothing but markers
		title = firstLine(untagged(line))
	}
	return strings.TrimSpace(Head(title, length))
}

// firstLine is the first line of a text that has one, without quotation marks around it and a full stop.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.Trim(strings.TrimSpace(first), "\"'“”‘’«»„` "), "."))
}

func isWordly(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// Head is the first n characters of a text.
func Head(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}
