package rawjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSettingMembersKeepsEveryOtherByte(t *testing.T) {
	set := []Member{{"a", json.RawMessage("9")}, {"z", json.RawMessage(`{"y":0}`)}}
	for text, want := range map[string]string{
		`{}`:                         `{"a":9,"z":{"y":0}}`,
		` { } `:                      ` { "a":9,"z":{"y":0}} `,
		`{"a" : 1.50 , "b":[ 1 ]}`:   `{"a" : 9 , "b":[ 1 ],"z":{"y":0}}`,
		`{"b":{"a":1},"\u0061":2}`:   `{"b":{"a":1},"\u0061":9,"z":{"y":0}}`,
		`{"z":1,"a":2,"x":"\u00e9"}`: `{"z":{"y":0},"a":9,"x":"\u00e9"}`,
		`{"a":1,"a":2}`:              "",
		`[]`:                         "",
		`{"a":1`:                     "",
		`{"a":1}}`:                   "",
	} {
		got, err := Set([]byte(text), set...)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s (%v), want %s", text, got, err, want)
		}
	}
}

func TestMembersAreRemovedAndRenamed(t *testing.T) {
	if got, err := Without([]byte(`{"a":1, "b" : [2], "c":3}`), "a", "c"); string(got) != `{"b":[2]}` || err != nil {
		t.Errorf("without a and c: %s (%v)", got, err)
	}
	if got, err := Rename([]byte(`{"a":1, "name" : "x<y" }`), "name", "p<q>"); string(got) != `{"a":1, "name" : "p<q>" }` || err != nil {
		t.Errorf("renamed: %s (%v)", got, err)
	}
	if got, err := Rename([]byte(`{"a":1}`), "name", "x"); err == nil {
		t.Errorf("a member that does not exist was renamed: %s", got)
	}
	got, err := EditMember([]byte(`{"l":[ {"u":1} , 2 ],"m":0}`), "l", func(list json.RawMessage) (json.RawMessage, error) {
		return EditElements(list, func(e json.RawMessage) (json.RawMessage, error) {
			if e[0] == '{' {
				return Set(e, Member{"u", Quote("é")})
			}
			return e, nil
		})
	})
	if want := `{"l":[{"u":"é"},2],"m":0}`; string(got) != want || err != nil {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	unchanged := []byte(`{"a":1}`)
	if got, _ := Edit(unchanged, func(string, json.RawMessage) (json.RawMessage, error) { return nil, nil }); &got[0] != &unchanged[0] {
		t.Error("an unchanged object was copied")
	}
}

func TestFindReturnsAMembersPosition(t *testing.T) {
	text := []byte(`{"a": {"t" : "x"} , "b":2}`)
	at, err := Find(text, "a")
	if err != nil || string(at.In(text)) != `{"t" : "x"}` {
		t.Fatalf("a: %q (%v)", at.In(text), err)
	}
	inner, err := Find(at.In(text), "t")
	if got := Replace(text, inner.After(at.From), []byte("7")); err != nil || string(got) != `{"a": {"t" : 7} , "b":2}` {
		t.Errorf("replaced: %s (%v)", got, err)
	}
	if at, err := Find(text, "c"); err != nil || !at.Empty() || at.In(text) != nil || !at.After(3).Empty() {
		t.Errorf("a member that does not exist: %v (%v)", at, err)
	}
	for _, bad := range []string{`{"a":1,"a":2}`, `{"a":1`, `1`, `{} {}`} {
		if _, err := Find([]byte(bad), "a"); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestFieldsRejectsAmbiguousObjects(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"name":1,"other":2}`: true, `{"Name":1}`: false, `{"name":1,"n\u0061me":2}`: false, `[]`: false, `1`: false, `{}`: true,
	} {
		if _, got := Fields([]byte(text), "name"); got != ok {
			t.Errorf("%s: ok is %v", text, got)
		}
	}
	var got []string
	for e := range Elements([]byte(`[1, {"a":2} ,"x"]`)) {
		got = append(got, string(e))
	}
	if want := `1|{"a":2}|"x"`; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	if got := Array([]json.RawMessage{[]byte("1"), []byte("{}")}); string(got) != "[1,{}]" {
		t.Errorf("joined: %s", got)
	}
}
