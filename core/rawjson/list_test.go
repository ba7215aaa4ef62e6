package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestAListContainsTheSameMembersAsAMap(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`"n%d":%d`, i, i)
	}
	for _, object := range []string{
		`{}`, `{"a":1,"b":{"a":2}}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"Known":1}`, `[1]`, `{"":1,"":2}`,
		`{` + strings.Join(many, ",") + `}`, `{` + strings.Join(many, ",") + `,"n3":1}`, `{` + strings.Join(many, ",") + `,"n99":1}`,
	} {
		fields, want := Fields([]byte(object), "known")
		list, ok := ListOf([]byte(object), "known")
		if ok != want || len(list) != len(fields) {
			t.Errorf("%.60s: %d members, %v; want %d, %v", object, len(list), ok, len(fields), want)
		}
		for name, value := range fields {
			if string(list.Get(name)) != string(value) {
				t.Errorf("%.60s: %q is %s, want %s", object, name, list.Get(name), value)
			}
		}
		if list.Get("absent") != nil {
			t.Errorf("%.60s: a member that is absent", object)
		}
	}
}
