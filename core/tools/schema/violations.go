package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// The bounds of the violations of one check. A message can repeat the value, or the schema, and a path the names
// above the value: without bounds, one argument with a name of 900 KB would be repeated in every violation below it.
const (
	maxViolations     = 100      // in one error
	maxViolationBytes = 64 << 10 // of the paths and messages of one error before they are shortened; the one beyond it is the last
	maxViolationText  = 1_000    // bytes of one path, and of one message
	maxNamedValues    = 50       // values or properties that one message lists
	moreText          = "…"      // ends what was shortened
	maxNamedText      = 200      // bytes of one of them
)

// Violation is one place where arguments do not match a tool's schema (docs/api.md 3.3).
type Violation struct {
	Path    string `json:"path"` // a JSON pointer into the arguments, "" for the whole
	Message string `json:"message"`
}

// violationList collects violations within the bounds.
type violationList struct {
	printer *message.Printer
	found   []Violation
	bytes   int
}

// violations returns the leaves of the tree of causes, which name what is wrong.
func violations(e *jsonschema.ValidationError) []Violation {
	l := violationList{printer: message.NewPrinter(language.English)}
	l.add(e)
	return l.found
}

func (l *violationList) add(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		l.add(cause)
	}
	if len(e.Causes) > 0 || len(l.found) >= maxViolations || l.bytes > maxViolationBytes {
		return
	}
	path, what := pointer(e.InstanceLocation), l.message(e.ErrorKind)
	l.bytes += len(path) + len(what)
	l.found = append(l.found, Violation{Path: shortened(path, maxViolationText), Message: shortened(what, maxViolationText)})
}

// message says what is wrong. Lists are shortened before they become text.
func (l *violationList) message(k jsonschema.ErrorKind) string {
	more := 0
	switch long := k.(type) {
	case *kind.Enum:
		more = len(long.Want) - maxNamedValues
		if more > 0 {
			k = &kind.Enum{Got: long.Got, Want: long.Want[:maxNamedValues]}
		}
	case *kind.AdditionalProperties:
		more = len(long.Properties) - maxNamedValues
		k = &kind.AdditionalProperties{Properties: named(long.Properties)}
	case *kind.Required:
		more = len(long.Missing) - maxNamedValues
		k = &kind.Required{Missing: named(long.Missing)}
	}
	text := k.LocalizedString(l.printer)
	if more > 0 {
		text = fmt.Sprintf("%s (and %d more)", shortened(text, maxViolationText-len("(and 1000000 more)")), more)
	}
	return text
}

// named returns the first of the names, each one shortened.
func named(names []string) []string {
	first := make([]string, min(len(names), maxNamedValues))
	for i := range first {
		first[i] = shortened(names[i], maxNamedText)
	}
	return first
}

// shortened returns at most limit bytes of a text.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(moreText)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + moreText
}

func pointer(steps []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901
	var b strings.Builder
	for _, s := range steps {
		b.WriteString("/" + escape.Replace(s))
	}
	return b.String()
}
