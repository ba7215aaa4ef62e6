package model_test

import (
	"encoding/json"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

func TestPropertiesAreMadeValidAndNumbersKeepTheirDigits(t *testing.T) {
	for property, want := range map[string]string{
		`{"type":"int","maximum":9007199254740993}`:              `{"maximum":9007199254740993,"type":"integer"}`,
		`{"type":["str","null"]}`:                                `{"type":["string","null"]}`,
		`{"type":"whatever"}`:                                    `{}`,
		`{"type":"array"}`:                                       `{"items":{},"type":"array"}`,
		`{"type":"array","items":[{"type":"int"}]}`:              `{"items":{"type":"integer"},"type":"array"}`,
		`{"type":"array","items":[{"type":"string"},{}]}`:        `{"items":{"anyOf":[{"type":"string"},{}]},"type":"array"}`,
		`{"$ref":"#/$defs/none","title":"t"}`:                    `{"title":"t"}`,
		`{"$ref":"https://example.com/x"}`:                       `{}`,
		`{"minimum":1,"exclusiveMinimum":true}`:                  `{"exclusiveMinimum":1}`,
		`{"divisibleBy":2,"extends":{},"disallow":"x"}`:          `{"multipleOf":2}`,
		`{"type":"string","pattern":"(?=x)"}`:                    `{"type":"string"}`,
		`{"type":"string","pattern":"[0-9]+"}`:                   `{"type":"string"}`,
		`{"type":"string","minLength":-1,"enum":[]}`:             `{"type":"string"}`,
		`{"description":null,"anyOf":[]}`:                        `{}`,
		`[]`:                                                     `{}`,
		`{"type":"object","properties":[],"required":false}`:     `{"type":"object"}`,
		`{"type":"object","properties":{"y":{"required":true}}}`: `{"properties":{"y":{}},"required":["y"],"type":"object"}`,
	} {
		got := model.SafeSchema(json.RawMessage(`{"type":"object","properties":{"x":` + property + `}}`))
		if string(got) != `{"properties":{"x":`+want+`},"type":"object"}` {
			t.Errorf("%s becomes %s, want %s", property, got, want)
		}
	}
}

func TestAValidSchemaIsUnchanged(t *testing.T) {
	const raw = `{"type":"object", "properties":{"z":{"type":"number","default":1.50,"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string","pattern":"^a$"}},"required":["z"]}`
	if got := model.SafeSchema(json.RawMessage(raw)); string(got) != raw {
		t.Errorf("becomes %s", got)
	}
}

func TestARootThatCombinesSchemasKeepsTheirProperties(t *testing.T) {
	for raw, want := range map[string]string{
		`{"$ref":"#/definitions/I","definitions":{"I":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`:                                               `{"definitions":{"I":{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}},"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
		`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b",1]}]}`:                                                                      `{"properties":{"a":{},"b":{}},"required":["a","b"],"type":"object"}`,
		`{"type":"object","properties":{"c":{}},"oneOf":[{"properties":{"k":{"const":"x"},"a":{}},"required":["k","a"]},{"properties":{"k":{"const":"y"}},"required":["k"]}]}`: `{"properties":{"a":{},"c":{},"k":{"anyOf":[{"const":"x"},{"const":"y"}]}},"required":["k"],"type":"object"}`,
		`{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`: `{"properties":{},"type":"object"}`,
	} {
		if got := model.SafeSchema(json.RawMessage(raw)); string(got) != want {
			t.Errorf("%s becomes %s, want %s", raw, got, want)
		}
	}
}

func TestListsOfTypesAndOtherEnumsAreRemovedForServersThatRejectThem(t *testing.T) {
	const raw = `{"type":"object","properties":{"a":{"type":["null","string"]},"b":{"type":["integer","string"]},"c":{"enum":[1,2]},"d":{"type":"string","enum":["x"]},"e":{"type":"integer","enum":["1"]}}}`
	const want = `{"properties":{"a":{"nullable":true,"type":"string"},"b":{"type":"integer"},"c":{},"d":{"enum":["x"],"type":"string"},"e":{"type":"integer"}},"type":"object"}`
	if got := model.SafeSchema(json.RawMessage(raw), model.TypeLists, model.OtherEnums); string(got) != want {
		t.Errorf("becomes %s, want %s", got, want)
	}
}
