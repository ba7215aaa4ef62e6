package headerparam

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Agrees reports whether the values of a header, one for each line, are that of the argument: there is one
// line for a string, a boolean, or an integer that every reader takes for the same, and none for an
// argument that is absent or null.
func Agrees(lines []string, parameter core.Mirror, arguments json.RawMessage) bool {
	value, unique := argument(arguments, parameter.Path)
	if !unique {
		return false
	}
	if value == nil || string(value) == "null" {
		return len(lines) == 0
	}
	if len(lines) != 1 || !isPlainASCII(lines[0]) {
		return false
	}
	decoded, ok := Decode(lines[0])
	if !ok {
		return false
	}
	switch value[0] {
	case '"':
		return rawjson.Text(value) == decoded
	case 't', 'f':
		return string(value) == decoded
	case '{', '[':
		return false
	}
	return sameInteger(string(value), decoded)
}

// argument returns the value at a path of members, nil for none. It returns false where a key comes twice:
// another reader might take the other value.
func argument(value json.RawMessage, path []string) (json.RawMessage, bool) {
	for _, name := range path {
		if len(value) == 0 || value[0] != '{' {
			return nil, true
		}
		fields, ok := rawjson.Fields(value)
		if !ok {
			return nil, false
		}
		value = fields[name]
	}
	return value, true
}

// isPlainASCII reports whether a header has only characters that need no encoding.
func isPlainASCII(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') })
}

// sameInteger compares integers however they are written: 1, 1.0 and 1e0 are equal. Those past 2^53
// are not the same to every reader, and never match.
func sameInteger(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, bad := strconv.ParseFloat(b, 64)
	return err == nil && bad == nil && x == y && x == math.Trunc(x) && math.Abs(x) < 1<<53
}
