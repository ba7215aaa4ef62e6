package rawjson

import "encoding/json"

// List contains the members of an object, in order. Objects in messages have few members, so searching them costs
// less than building a map.
type List []Member

// scanLimit is how many members are compared with each other; for more, a map is used.
const scanLimit = 16

// ListOf returns the members of a valid object. It returns false for objects that Fields rejects.
func ListOf(object []byte, known ...string) (List, bool) {
	s := Scanner{Data: object}
	s.Space()
	list, err := s.List(known...)
	return list, err == nil && s.End()
}

// List consumes the object at the current position and returns its members. It returns an error for objects
// that Fields rejects.
func (s *Scanner) List(known ...string) (List, error) {
	var list List
	var names map[string]struct{}
	err := s.Members(known, func(name string) error {
		value, err := s.Take()
		if err != nil {
			return err
		}
		var duplicate bool
		if len(list) < scanLimit {
			duplicate = list.Get(name) != nil
		} else {
			if names == nil {
				names = list.names()
			}
			_, duplicate = names[name]
			names[name] = struct{}{}
		}
		if duplicate {
			return ErrDuplicate
		}
		if list == nil {
			list = make(List, 0, 4)
		}
		list = append(list, Member{Name: name, Value: value})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Get returns the value of a member, or nil if it is absent.
func (l List) Get(name string) json.RawMessage {
	for i := range l {
		if l[i].Name == name {
			return l[i].Value
		}
	}
	return nil
}

func (l List) names() map[string]struct{} {
	names := make(map[string]struct{}, 2*len(l))
	for _, m := range l {
		names[m.Name] = struct{}{}
	}
	return names
}
