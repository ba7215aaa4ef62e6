package rawjson_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

func TestWholeNumbersLoseTheirFractionAndExponent(t *testing.T) {
	for value, want := range map[string]string{
		"46.0": "46", "4.6e1": "46", "-2.0": "-2", "0.0": "0", "9007199254740992.0": "9007199254740992",
		"46": "46", "1.5": "1.5", "1e300": "1e300", `"2.0"`: `"2.0"`, "[2.0]": "[2.0]", "true": "true", "null": "null", "": "",
	} {
		if got := rawjson.PlainInteger([]byte(value)); string(got) != want {
			t.Errorf("%s becomes %s, want %s", value, got, want)
		}
	}
}
