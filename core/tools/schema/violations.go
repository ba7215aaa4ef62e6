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

// The limits on the violations found by one check. A message can repeat the value or the schema, and a path repeats the
// names above the value. Without limits, a single 900 KB name in the arguments would be repeated in every violation
// below it.
const (
	maxViolations     = 100      // per error
	maxViolationBytes = 64 << 10 // paths and messages per error, before shortening; the violation that exceeds it is the last
	maxViolationText  = 1_000    // bytes per path and per message
	maxNamedValues    = 50       // values or properties listed in a message
	moreText          = "…"      // marks the end of shortened text
	maxNamedText      = 200      // bytes per listed property
)

// Violation is one place where arguments do not match a tool's schema (docs/api.md 1.2).
type Violation struct {
	Path    string `json:"path"` // a JSON pointer into the arguments; "" for the arguments themselves
	Message string `json:"message"`
}

// violationList collects violations within the limits.
type violationList struct {
	printer *message.Printer
	found   []Violation
	bytes   int
}

// violations returns the leaves of a tree of causes, which are the specific errors.
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

// message describes an error. It shortens lists before it formats them.
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

// named returns the first maxNamedValues names, each shortened.
func named(names []string) []string {
	first := make([]string, min(len(names), maxNamedValues))
	for i := range first {
		first[i] = shortened(names[i], maxNamedText)
	}
	return first
}

// shortened truncates a string to at most limit bytes.
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
