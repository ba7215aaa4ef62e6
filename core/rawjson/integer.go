package rawjson

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// maxExact is the magnitude up to which a float64 represents every whole number exactly.
const maxExact = 1 << 53

// PlainInteger removes the fraction and the exponent from a whole number: 46.0 becomes 46. JSON Schema considers it an
// integer, and clients whose numbers are all floats send it, but encoding/json does not accept it as an integer. Every
// other value is returned unchanged.
func PlainInteger(value json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(string(value))
	if text == "" || text[0] == '"' || !strings.ContainsAny(text, ".eE") {
		return value
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return value
	}
	return json.RawMessage(strconv.FormatInt(int64(f), 10))
}
