package params

import (
	"encoding/json"
	"strings"
	"testing"
)

const form = `{"type":"object","required":["zip","mail"],"properties":{
	"zip":{"type":"string","minLength":5,"maxLength":5,"pattern":"^[0-9]+$"},
	"mail":{"type":"string","format":"email"},
	"count":{"type":["integer","null"],"minimum":1,"maximum":9007199254740993},
	"big":{"type":"number","minimum":0.5},
	"colour":{"type":"string","oneOf":[{"const":"red","title":"Red"},{"const":"blue","title":"Blue"}]},
	"any":{"minimum":"wrong","pattern":7,"oneOf":{}},
	"again":{"type":"boolean"}}}`

func parsed(t *testing.T) (s Schema) {
	t.Helper()
	if err := json.Unmarshal([]byte(form), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParametersAreInTheOrderOfTheSchema(t *testing.T) {
	if got := strings.Join(parsed(t).Names(), " "); got != "zip mail count big colour any again" {
		t.Errorf("%q", got)
	}
}

func TestAHintNamesTheChoicesOrTheTypeAndTheLimits(t *testing.T) {
	for name, want := range map[string]string{
		"zip": "string, 5 to 5 characters, matching ^[0-9]+$", "mail": "string, email", "count": "integer, 1 to 9007199254740993",
		"big": "number, at least 0.5", "colour": "red, blue", "any": "", "again": "boolean",
	} {
		if got := parsed(t).Properties[name].Hint(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAValueOutsideTheLimitsIsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"zip", "12345", ""}, {"zip", "1234", "must be 5 to 5 characters"}, {"zip", "1234a", "matching"},
		{"count", "1", ""}, {"count", "0", "must be 1 to"}, {"count", "9007199254740993", ""}, {"count", "9007199254740994", "must be 1 to"}, {"count", "x", "whole number"},
		{"big", "0.4999999999999999999", "at least 0.5"}, {"colour", "red", ""}, {"colour", "Red", "one of red, blue"}, {"any", "x", ""}, {"again", "perhaps", "true or false"},
	} {
		p := parsed(t).Properties[c.name]
		v, err := p.Value(c.text)
		if err == nil {
			err = p.Check(v)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}
