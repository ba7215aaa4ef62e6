package headerparam

import (
	"encoding/base64"
	"strings"
)

// Prefix begins the names of the headers that repeat arguments of a tool call.
const Prefix = "Mcp-Param-"

// The base64 form of a value that a header cannot hold as it is.
const (
	encodedStart = "=?base64?"
	encodedEnd   = "?="
)

// Encode returns a value as it is if a header can hold it, and in base64 form otherwise.
func Encode(value string) string {
	encoded := strings.HasPrefix(value, encodedStart) && strings.HasSuffix(value, encodedEnd)
	special := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	if value != "" && !encoded && !special && strings.TrimSpace(value) == value { // many readers drop an empty header
		return value
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(value)) + encodedEnd
}

// Decode is the opposite of Encode. It returns false for a value in base64 form that is not base64.
func Decode(value string) (string, bool) {
	inner, opened := strings.CutPrefix(value, encodedStart)
	inner, closed := strings.CutSuffix(inner, encodedEnd)
	if !opened || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(text), err == nil
}
