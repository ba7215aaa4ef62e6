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

func TestAValidSchemaStaysAsItWasWritten(t *testing.T) {
	const raw = `{"type":"object", "properties":{"z":{"type":"number","default":1.50,"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string","pattern":"^a$"}},"required":["z"]}`
	if got := model.SafeSchema(json.RawMessage(raw)); string(got) != raw {
		t.Errorf("becomes %s", got)
	}
}
