package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

// The tests set no time limits of their own. Without the bounds under test, the checks would exceed the time limit of
// the test binary.

// chain returns a schema with n definitions, each of which refers twice to the next definition.
func chain(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","allOf":[{"$ref":"#/$defs/d0"}],"$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"required":["missing"]}}}`, n)
	return b.String()
}

func TestASchemaWithChainedReferencesIsTooComplex(t *testing.T) {
	v := New()
	for _, depth := range []int{20, 24, 1000} {
		tool := core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(chain(depth))}
		if !v.TooComplex(tool.Schema) {
			t.Errorf("depth %d: accepted", depth)
		}
		if err := v.CheckArguments(t.Context(), tool, json.RawMessage(`{}`)); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

func TestAFormIsNotCheckedAgainstASchemaWithChainedReferences(t *testing.T) {
	if err := New().CheckForm(json.RawMessage(chain(24)), json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
}

func TestACheckThatTakesTooManyStepsIsRefused(t *testing.T) {
	v := New()
	check := func(schema, arguments string) error {
		return v.CheckArguments(t.Context(), core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(schema)}, json.RawMessage(arguments))
	}
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	twice := `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`
	for name, c := range map[string]struct {
		schema, arguments string
		refused           bool
	}{
		"recursion with two branches, few levels":  {twice, nested(8), false},
		"recursion with two branches, many levels": {twice, nested(60), true},
		"recursion over all JSON values":           {`{"anyOf":[{"type":"object","additionalProperties":{"$ref":"#"}},{"type":"array","items":{"$ref":"#"}},{"type":"number"}]}`, nested(60), false},
		"a tree with two branches":                 {`{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`, nested(60), false},
		"many values, one step each":               {`{"properties":{"a":{"items":{"type":"number"}}}}`, `{"a":[1` + strings.Repeat(",1", 50_000) + `]}`, false},
		"many values, many steps each":             {`{"properties":{"a":{"items":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 500) + `true]}}}}`, `{"a":[1` + strings.Repeat(",1", 50_000) + `]}`, true},
		"a reference to itself, the same value":    {`{"properties":{"a":{"allOf":[{"$ref":"#/properties/a"}]}}}`, `{"a":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(c.schema, c.arguments)
			if refused := core.CodeOf(err) == core.CodeInvalidInput && strings.Contains(err.Error(), "to be checked"); refused != c.refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestACheckListsABoundedNumberOfViolations(t *testing.T) {
	v := New()
	tool := core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(`{"properties":{"a":{"items":{"type":"string"}}}}`)}
	err := v.CheckArguments(t.Context(), tool, json.RawMessage(`{"a":[1`+strings.Repeat(",1", 5000)+`]}`))
	known, ok := errors.AsType[*core.Error](err)
	if !ok {
		t.Fatal(err)
	}
	if found := known.Details.(map[string]any)["errors"].([]Violation); len(found) != maxViolations {
		t.Errorf("%d violations", len(found))
	}
}

// Every violation repeats the argument or the schema. Without the limits, the response to a 1 MB call would take 90 MB.
func TestRepeatedViolationsAreBounded(t *testing.T) {
	long := strings.Repeat("n\u00fc", 300_000)
	names := make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprintf(`"%d"`, i)
	}
	rows := `[1` + strings.Repeat(",1", 150) + `]`
	for name, check := range map[string][2]string{
		"a name":             {`{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + long + `":` + rows + `}`},
		"a value":            {`{"properties":{"a":{"allOf":[{"pattern":"x1"}` + strings.Repeat(`,{"pattern":"x2"}`, 100) + `]}}}`, `{"a":"` + long + `"}`},
		"an enum":            {`{"properties":{"a":{"items":{"enum":[` + strings.Join(names[:4000], ",") + `]}}}}`, `{"a":` + rows + `}`},
		"a constant":         {`{"properties":{"a":{"items":{"const":"` + long + `"}}}}`, `{"a":` + rows + `}`},
		"unknown properties": {`{"additionalProperties":false}`, `{` + strings.Join(names, ":1,") + `:1}`},
		"missing properties": {`{"required":[` + strings.Join(names, ",") + `]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			err := New().CheckArguments(t.Context(), core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(check[0])}, json.RawMessage(check[1]))
			known, ok := errors.AsType[*core.Error](err)
			if !ok {
				t.Fatal(err)
			}
			text, err := json.Marshal(known.Details)
			if known.Details == nil {
				t.Fatal(known)
			}
			if err != nil || len(text) > 200<<10 || !utf8.Valid(text) {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			for _, v := range known.Details.(map[string]any)["errors"].([]Violation) {
				if v.Message == "" || len(v.Path) > maxViolationText || len(v.Message) > maxViolationText+100 {
					t.Fatalf("the path has %d bytes, the message %d", len(v.Path), len(v.Message))
				}
			}
		})
	}
}

func TestRegularExpressionsInSchemasTakeLinearTime(t *testing.T) {
	v := New()
	tool := core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(`{"properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}`)}
	err := v.CheckArguments(t.Context(), tool, json.RawMessage(`{"a":"`+strings.Repeat("a", 20_000)+`!"}`))
	if core.CodeOf(err) != core.CodeInvalidInput {
		t.Errorf("got %v", err)
	}
}

// Without the limit, the time for a check would grow with the square of the number of digits: 500 of these numbers
// would take 13 seconds.
func TestNumbersWithMillionsOfDigitsAreRefused(t *testing.T) {
	v := New()
	for _, schema := range []string{`{"minimum":0}`, `{"maximum":1}`, `{"multipleOf":7}`, `{"type":"integer"}`, `{"enum":[1]}`, `{"const":1}`} {
		tool := core.Tool{Server: "a", Name: "b", Schema: json.RawMessage(`{"properties":{"n":{"items":` + schema + `}}}`)}
		for _, number := range []string{"1e999999", "7e-999999", "1e1000001", "-1E+1000000000", "1e99999999999999999999", strings.Repeat("9", maxDigits+1)} {
			arguments := `{"n":[` + strings.Repeat(number+",", 500) + `1]}`
			if err := v.CheckArguments(t.Context(), tool, json.RawMessage(arguments)); core.CodeOf(err) != core.CodeInvalidInput || !strings.Contains(err.Error(), "digits") {
				t.Errorf("%s, %.30s: got %v", schema, number, err)
			}
		}
		for _, number := range []string{"1.7976931348623157e308", "4.9e-324", "1e0000000000000000000001", "9007199254740993"} {
			if err := v.CheckArguments(t.Context(), tool, json.RawMessage(`{"n":[`+number+`]}`)); err != nil && strings.Contains(err.Error(), "digits") {
				t.Errorf("%s, %s: %v", schema, number, err)
			}
		}
	}
}

func TestASchemaWithNumbersWithMillionsOfDigitsIsTooComplex(t *testing.T) {
	v := New()
	for _, limit := range []string{`"minimum":1e999999`, `"multipleOf":1e-999999`, `"minLength":1e999999`, `"enum":[1e1000001]`, `"default":1e999999`} {
		schema := json.RawMessage(`{"allOf":[` + strings.Repeat(`{`+limit+`},`, 10_000) + `{}]}`)
		if !v.TooComplex(schema) {
			t.Errorf("%s: accepted", limit)
		}
		if err := v.CheckOutputSchema(schema); err == nil {
			t.Errorf("%s: accepted as an output schema", limit)
		}
	}
}
