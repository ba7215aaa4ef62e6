package schema

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxDigits is how many digits a number may have, including the zeros that its exponent stands for. Checks compute with
// exact fractions: 1e999999 would take 400 KB and milliseconds each time, and a larger exponent makes the library panic.
const maxDigits = 1_000

// hasLongNumber reports whether a value contains a number with more than maxDigits digits.
func hasLongNumber(value any) bool {
	switch v := value.(type) {
	case json.Number:
		return isLong(string(v))
	case map[string]any:
		for _, member := range v {
			if hasLongNumber(member) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if hasLongNumber(element) {
				return true
			}
		}
	}
	return false
}

func isLong(number string) bool {
	digits := len(number)
	if at := strings.IndexAny(number, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(number[at+1:])
		if err != nil || exponent > maxDigits || exponent < -maxDigits {
			return true
		}
		digits = at + max(exponent, -exponent)
	}
	return digits > maxDigits
}
