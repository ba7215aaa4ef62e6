package rawjson

import (
	"bytes"
	"slices"
	"strings"
)

// DuplicateError contains the path of a name that appears twice in one object.
type DuplicateError struct{ Path string }

func (e *DuplicateError) Error() string { return e.Path + " is given more than once" }

// Unwrap returns ErrDuplicate.
func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

// CheckUnique checks that data is one JSON value, at most MaxDepth levels deep, in which no object has a member
// twice. It takes one pass, and memory for the names of the objects that are open at a time. Errors are
// ErrSyntax, ErrDepth and *DuplicateError.
func CheckUnique(data []byte) error {
	u := uniqueness{Scanner: Scanner{Data: data}}
	u.Space()
	err := u.value()
	if err == nil && !u.End() {
		return ErrSyntax
	}
	return err
}

// uniqueness walks a JSON text and collects the names in open objects.
type uniqueness struct {
	Scanner
	names [][]byte // in the open objects, innermost last
	path  []step   // to the scanner's position
}

// step is one level of nesting.
type step struct {
	name  []byte // the open member's name; nil in an array
	first int    // index in names of the object's first name
}

func (u *uniqueness) value() error {
	switch c := u.peek(); {
	case c != '{' && c != '[':
		return u.scalar()
	case len(u.path) == MaxDepth:
		return ErrDepth
	case c == '[':
		return u.nested(u.array)
	}
	return u.nested(u.object)
}

// nested reads one level deeper. On an error the path is unchanged.
func (u *uniqueness) nested(read func() error) error {
	u.path = append(u.path, step{first: len(u.names)})
	if err := read(); err != nil {
		return err
	}
	u.path = u.path[:len(u.path)-1]
	return nil
}

func (u *uniqueness) object() error {
	u.take('{')
	if u.Space(); u.take('}') {
		return nil
	}
	first := u.path[len(u.path)-1].first
	for {
		key, err := u.key()
		if err != nil {
			return err
		}
		name := Name(key)
		u.names = append(u.names, name)
		u.path[len(u.path)-1].name = name
		if err := u.value(); err != nil {
			return err
		}
		u.Space()
		if u.take('}') {
			break
		}
		if !u.take(',') {
			return ErrSyntax
		}
		u.Space()
	}
	own := u.names[first:]
	u.names = u.names[:first]
	if twice := repeated(own); twice != nil {
		u.path[len(u.path)-1].name = twice
		return &DuplicateError{Path: u.pathText()}
	}
	return nil
}

func (u *uniqueness) array() error {
	u.take('[')
	if u.Space(); u.take(']') {
		return nil
	}
	for {
		if err := u.value(); err != nil {
			return err
		}
		u.Space()
		if u.take(']') {
			return nil
		}
		if !u.take(',') {
			return ErrSyntax
		}
		u.Space()
	}
}

// maxUnsorted is how many names are compared with each other; more are sorted first.
const maxUnsorted = 8

// repeated returns a name that appears twice, or nil. It may reorder names.
func repeated(names [][]byte) []byte {
	if len(names) > maxUnsorted {
		slices.SortFunc(names, bytes.Compare)
		for i := 1; i < len(names); i++ {
			if bytes.Equal(names[i], names[i-1]) {
				return names[i]
			}
		}
		return nil
	}
	for i, name := range names {
		for _, other := range names[:i] {
			if bytes.Equal(name, other) {
				return name
			}
		}
	}
	return nil
}

// maxPath limits the path in an error, in bytes.
const maxPath = 200

// pathText returns the scanner's position in the form a.b[].c.
func (u *uniqueness) pathText() string {
	var b strings.Builder
	for i, s := range u.path {
		switch {
		case s.name == nil:
			b.WriteString("[]")
		case i > 0:
			b.WriteString("." + string(s.name[:min(len(s.name), maxPath)]))
		default:
			b.Write(s.name[:min(len(s.name), maxPath)])
		}
		if b.Len() > maxPath {
			return strings.ToValidUTF8(b.String()[:maxPath], "") + "..."
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
