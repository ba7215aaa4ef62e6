package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/ropewalk/ropewalk/core"
)

// maxCompiled bounds the compiled schemas that are kept; past it the cache starts anew.
const maxCompiled = 4096

// Violation is one place where arguments do not match a tool's schema (docs/api.md 3.3).
type Violation struct {
	Path    string `json:"path"` // a JSON pointer into the arguments, "" for the whole
	Message string `json:"message"`
}

// inputs checks arguments against schemas, compiling each schema text once.
type validator struct {
	printer *message.Printer

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by schema text; nil when it does not compile
}

func newValidator() *validator {
	return &validator{printer: message.NewPrinter(language.English), compiled: map[string]*jsonschema.Schema{}}
}

// check returns core.CodeInvalidInput with every violation in its details. A tool without a usable
// schema takes any object: its app will judge.
func (in *validator) check(tool core.Tool, arguments json.RawMessage) error {
	return in.fits("arguments of "+tool.FullName(), "its input schema", arguments, in.schema(tool.Schema))
}

// fits is check for any object, of which what and by are the words for people. A nil schema fits all.
func (in *validator) fits(what, by string, object json.RawMessage, schema *jsonschema.Schema) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		return core.Errorf(core.CodeInvalidInput, "%s are not JSON: %w", what, err)
	}
	if _, ok := value.(map[string]any); !ok {
		return core.Errorf(core.CodeInvalidInput, "%s must be an object", what)
	}
	if schema == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(value))
	if !ok {
		return nil
	}
	return core.Errorf(core.CodeInvalidInput, "%s do not fit %s", what, by).
		WithDetails(map[string]any{"errors": in.violations(invalid, nil)})
}

func (in *validator) schema(text json.RawMessage) *jsonschema.Schema {
	if len(text) == 0 {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if s, ok := in.compiled[string(text)]; ok {
		return s
	}
	if len(in.compiled) >= maxCompiled {
		clear(in.compiled)
	}
	s := compile(text, jsonschema.NewCompiler())
	in.compiled[string(text)] = s
	return s
}

// compile returns nil for an invalid schema.
func compile(text json.RawMessage, c *jsonschema.Compiler) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	c.UseLoader(noLoader{}) // its default loader reads files: none of a schema's references may
	if err := c.AddResource("tool:input", doc); err != nil {
		return nil
	}
	s, err := c.Compile("tool:input")
	if err != nil {
		return nil
	}
	return s
}

// noLoader refuses references to anything outside the schema itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a tool's schema may not refer to " + url)
}

// violations flattens the tree of causes to its leaves, which name what is really wrong.
func (in *validator) violations(e *jsonschema.ValidationError, found []Violation) []Violation {
	for _, cause := range e.Causes {
		found = in.violations(cause, found)
	}
	if len(e.Causes) == 0 {
		found = append(found, Violation{Path: pointer(e.InstanceLocation), Message: e.ErrorKind.LocalizedString(in.printer)})
	}
	return found
}

func pointer(steps []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901
	var b strings.Builder
	for _, s := range steps {
		b.WriteString("/" + escape.Replace(s))
	}
	return b.String()
}
