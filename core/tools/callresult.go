package tools

import "github.com/ropewalk/ropewalk/core/rawjson"

// callResult is what the service reads in a CallToolResult.
type callResult struct {
	isError    bool // the tool failed
	needsInput bool // it is no result yet: the client is asked for input first
	linked     bool // a part of its content names a resource
}

// readResult reads a result in one pass, whatever its size: the texts in it may be large. Of a result that
// is not an object nothing is known.
func readResult(result []byte) (r callResult) {
	s := rawjson.Scanner{Data: result}
	s.Space()
	err := s.Fields(func(key []byte) error {
		switch string(rawjson.Name(key)) {
		case "isError":
			r.isError = s.Begins('t')
		case "resultType":
			value, err := s.Take()
			r.needsInput = string(value) == `"input_required"`
			return err
		case "content":
			if s.Begins('[') {
				return s.Items(func() error { return r.readPart(&s) })
			}
		}
		return s.Value()
	})
	if err != nil {
		return callResult{}
	}
	return r
}

// readPart reads a part of the content: a resource_link has a URI, and an embedded resource its contents.
func (r *callResult) readPart(s *rawjson.Scanner) error {
	if !s.Begins('{') {
		return s.Value()
	}
	return s.Fields(func(key []byte) error {
		switch string(rawjson.Name(key)) {
		case "uri", "resource":
			r.linked = true
		}
		return s.Value()
	})
}
