package relyingparty

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Claims is the payload of a token, by claim name. Names are compared exactly: "Exp" is not "exp".
type Claims map[string]json.RawMessage

// Text returns a string claim, or "" if it is absent or of another type.
func (c Claims) Text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// List returns a claim that is a string or an array of strings, or nil. If no claim has that name, the name is a path
// through nested objects, such as realm_access.roles.
func (c Claims) List(name string) []string {
	value, ok := c[name]
	if !ok {
		if value, ok = c.nested(name); !ok {
			return nil
		}
	}
	var one string
	if json.Unmarshal(value, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(value, &many) != nil {
		return nil
	}
	return many
}

func (c Claims) nested(path string) (json.RawMessage, bool) {
	first, rest, more := strings.Cut(path, ".")
	value, ok := c[first]
	if !ok || !more {
		return value, ok
	}
	var inner Claims
	if json.Unmarshal(value, &inner) != nil {
		return nil, false
	}
	return inner.nested(rest)
}

// instant parses a NumericDate claim (RFC 7519 section 2), which must be a JSON number of seconds.
func (c Claims) instant(name string) (at time.Time, present bool, err error) {
	value, present := c[name]
	if !present {
		return time.Time{}, false, nil
	}
	var seconds *float64
	if err := json.Unmarshal(value, &seconds); err != nil || seconds == nil {
		return time.Time{}, true, errors.New("is not a number")
	}
	if *seconds < 0 || *seconds > float64(maxInstant) {
		return time.Time{}, true, errors.New("is out of range")
	}
	whole, part := math.Modf(*seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true, nil
}

const maxInstant = 253402300799 // the last second of the year 9999

// merge returns c plus the claims that only other has. email and email_verified always come from
// the same set.
func (c Claims) merge(other Claims) Claims {
	merged := maps.Clone(other)
	if merged == nil {
		merged = Claims{}
	}
	if _, ok := c["email"]; ok {
		delete(merged, "email_verified")
	}
	maps.Copy(merged, c)
	if _, ok := c["email"]; !ok {
		delete(merged, "email_verified")
		if verified, stated := other["email_verified"]; stated {
			merged["email_verified"] = verified
		}
	}
	return merged
}

func (c Claims) scopes() []string {
	if text := c.Text("scope"); text != "" {
		return strings.Fields(text)
	}
	return slices.Clone(c.List("scp"))
}
