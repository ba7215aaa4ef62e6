package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ropewalk/ropewalk/core"
)

const maxCompiled = 4096 // cached schemas; the cache is cleared when it is full

// Validator checks values against JSON Schemas. It compiles each schema only once, when its tool is listed. It is
// safe for concurrent use.
type Validator struct {
	mu       sync.Mutex
	compiled map[string]compiledSchema // by schema text
	outputs  map[string]error          // errors of output schemas, by schema text; nil for a valid one
}

// compiledSchema is a schema and the cost of checking values against it. Both are nil for a schema that is invalid or
// too complex, which is not checked.
type compiledSchema struct {
	schema     *jsonschema.Schema
	cost       *schemaCost
	tooComplex bool
}

// New returns a Validator.
func New() *Validator {
	return &Validator{compiled: map[string]compiledSchema{}, outputs: map[string]error{}}
}

// CheckArguments checks the arguments of a tool call. The error is core.CodeInvalidInput with the violations in its
// details. If there is no usable schema, every object is accepted, and the app has to check it.
func (v *Validator) CheckArguments(ctx context.Context, tool core.Tool, arguments json.RawMessage) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.checkObject("arguments of "+tool.FullName(), "its input schema", arguments, v.compile(tool.Schema))
}

// CheckForm checks the fields that a person filled in against the schema that an app sent (elicitation, form mode).
// The error is core.CodeInvalidInput with the violations in its details. Formats are checked, because MCP defines
// which formats a form may use. If the schema is invalid, every object is accepted.
func (v *Validator) CheckForm(schema, content json.RawMessage) error {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return v.checkObject("the fields of content", "what the app asks for", content, compile(schema, c))
}

// TooComplex reports whether values cannot be checked against a tool's schema within bounds. It compiles the schema
// ahead of calls.
func (v *Validator) TooComplex(schema json.RawMessage) bool { return v.compile(schema).tooComplex }

// CheckOutputSchema returns an error if an output schema is invalid. It does not check regular expressions, because
// clients may support a different syntax.
func (v *Validator) CheckOutputSchema(schema json.RawMessage) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err, ok := v.outputs[string(schema)]; ok {
		return err
	}
	if len(v.outputs) >= maxCompiled {
		clear(v.outputs)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) { return anyPattern(pattern), nil })
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err == nil && hasLongNumber(doc) {
		err = errTooComplex
	}
	if err == nil {
		err = c.AddResource("tool:output", doc)
	}
	if err == nil {
		_, err = c.Compile("tool:output")
	}
	v.outputs[string(schema)] = err
	return err
}

// anyPattern is a regular expression that is never compiled.
type anyPattern string

func (p anyPattern) String() string        { return string(p) }
func (anyPattern) MatchString(string) bool { return true }

// checkObject checks an object against a schema. what and by describe the object and the schema in errors.
func (v *Validator) checkObject(what, by string, object json.RawMessage, s compiledSchema) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		return core.Errorf(core.CodeInvalidInput, "%s are not JSON: %w", what, err)
	}
	if _, ok := value.(map[string]any); !ok {
		return core.Errorf(core.CodeInvalidInput, "%s must be an object", what)
	}
	if s.schema == nil {
		return nil
	}
	if hasLongNumber(value) {
		return core.Errorf(core.CodeInvalidInput, "%s contain a number with more than %d digits", what, maxDigits)
	}
	if !s.cost.allows(value) {
		return core.Errorf(core.CodeInvalidInput, "%s are too large or nested too deeply to be checked against %s", what, by)
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](s.schema.Validate(value))
	if !ok {
		return nil
	}
	return core.Errorf(core.CodeInvalidInput, "%s do not match %s", what, by).
		WithDetails(map[string]any{"errors": violations(invalid)})
}

// compile returns the compiled form of a schema, from the cache if possible.
func (v *Validator) compile(text json.RawMessage) compiledSchema {
	if len(text) == 0 {
		return compiledSchema{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s, ok := v.compiled[string(text)]; ok {
		return s
	}
	if len(v.compiled) >= maxCompiled {
		clear(v.compiled)
	}
	s := compile(text, jsonschema.NewCompiler())
	v.compiled[string(text)] = s
	return s
}

// compile compiles and measures a schema. Its regular expressions use Go's RE2 syntax, which matches in linear time.
func compile(text json.RawMessage, c *jsonschema.Compiler) compiledSchema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return compiledSchema{}
	}
	if hasLongNumber(doc) {
		return compiledSchema{tooComplex: true}
	}
	c.UseLoader(noLoader{}) // the default loader would let a schema's references read files
	if err := c.AddResource("tool:input", doc); err != nil {
		return compiledSchema{}
	}
	s, err := c.Compile("tool:input")
	if err != nil {
		return compiledSchema{}
	}
	cost, err := measure(s)
	if err != nil {
		return compiledSchema{tooComplex: true}
	}
	return compiledSchema{schema: s, cost: cost}
}

// noLoader rejects references to anything outside the schema itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a tool's schema may not refer to " + url)
}
