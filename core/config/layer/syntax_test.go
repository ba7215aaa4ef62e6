package layer

import (
	"strings"
	"testing"
)

// The cases are broken files with the line, the column and the beginning of the reported message.
func TestTextThatIsNotYAMLIsReportedAtItsLineAndColumn(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		line, column int
		says         string
	}{
		"a quote that is not closed":                         {"log:\n  level: \"info\nhttp:\n  port: 80\n", 2, 10, `at "level:": the quoted text that begins here has no closing quote`},
		"a quote after closed ones":                          {"a: 'x'\nlog: {level: \"info\", format: \"json}\n", 2, 30, `at "log:": the quoted text`},
		"a quote on the first line":                          {"log: \"x\n", 1, 6, `at "log:": the quoted text`},
		"Windows line endings":                               {"log:\r\n  level: 'info\r\nhttp: {}\r\n", 2, 10, `at "level:": the quoted text`},
		"a byte order mark":                                  {"\ufefflog:\n  level: 'info\nhttp: {}\n", 2, 10, `at "level:": the quoted text`},
		"a tab":                                              {"log:\n  level: info\nhttp:\n\tport: 80\n", 4, 1, `at "port:": found character that cannot start any token (YAML is indented with spaces`},
		"a tab before a key":                                 {"log:\n  level: info\n\tformat: json\n", 3, 1, `at "format:": there is a tab in the indentation of this line`},
		"a tab before a text":                                {"a: b\n\tc\n d: e\n", 2, 1, `there is a tab in the indentation of this line`},
		"a tab in a block":                                   {"a: 1\nb: |\n \n\tcanary\n", 4, 1, `there is a tab in the indentation of this line`},
		"a tab after another in a comment":                   {"# x\n\t# y\na: 1\nb: c\n\td\n", 5, 1, `there is a tab in the indentation of this line`},
		"a tag that does not exist":                          {"a: 1\nc: !canary!x\n", 2, 0, `at "c:": ! begins a tag`},
		"a tag on the first line":                            {"c: !canary!x\n", 1, 0, `at "c:": ! begins a tag`},
		"an escape on a later line":                          {"a: 1\nb: \"x\n  y\n  \\q\"\nc: 1\n", 4, 3, `there is no such escape`},
		"a quote before a document":                          {"a: 1\nb: 'x\n---\nc: 1\n", 2, 0, `at "b:": the quoted text that begins here has no closing quote before`},
		"a file that ends inside a mapping, after a comment": {"a: 1\nlog: { # x\n  level: info, # y\n", 2, 6, `at "log:": the file ends inside a list or mapping`},
		"a file that ends inside several lists and mappings": {"a: {b: 1}\nb: [\n{\n[1, 2], c: {\n", 2, 4, `at "b:": the file ends inside a list or mapping`},
		"a key that is indented less":                        {"# a\n\nhttp:\n    port: 80\n  host: x\nlog: {}\n", 5, 3, `at "host:": a key is expected here`},
		"a key that is indented more":                        {"log:\n  level: info\n    format: json\nhttp: {}\n", 3, 11, `at "format:": a ":" is not allowed here`},
		"a key between two columns":                          {"http:\n  port: 80\n host: x\nlog: {}\n", 3, 2, `at "host:": a key is expected here`},
		"an item among keys":                                 {"http:\n  port: 80\n  - x\n", 3, 3, `a key is expected here`},
		"a key outside its item":                             {"registries:\n- adapter: directory\n name: x\n", 3, 2, `at "name:": a key is expected here`},
		"a key without a colon":                              {"http:\n  host: b\n  port\nlog: {}\n", 3, 3, `a ":" is expected after this key`},
		"text after a quote":                                 {"log:\n  level: \"info\" x\nhttp: {}\n", 2, 17, `at "level:": a key is expected here`},
		"a colon in a text":                                  {"http:\n  host: a: b\nlog: {}\n", 2, 10, `at "host:": a ":" is not allowed here`},
		"a list that is not closed":                          {"http:\n  trustedProxies: [a, b\n  port: 80\nlog: {}\n", 2, 0, `at "trustedProxies:": a "[" on this line is not closed with "]", or a comma is missing between here and line 4`},
		"a mapping that is not closed":                       {"http: {}\nlog: {\n  level: info,\n  format: json\n", 2, 0, `at "log:": a "{" on this line is not closed with "}", or a comma is missing between here and the end of the file`},
		"a file that ends inside a list":                     {"http: {}\nlog: {\n  level: info,\n  format: [\n\n", 2, 6, `at "log:": the file ends inside a list or mapping`},
		"a bracket that closes nothing":                      {"http: {}\nlog: ]\n", 2, 6, `at "log:": a value is expected here`},
		"an unknown alias":                                   {"http: {}\napiKey: *canary\nlog: {}\n", 2, 10, `at "apiKey:": * begins an alias`},
		"an escape that does not exist":                      {"http: {}\nlog:\n  level: \"in\\qfo\"\n", 3, 13, `at "level:": there is no such escape`},
		"a control character":                                {"http: {}\nlog: \x01\n", 2, 6, `the control character U+0001 is not allowed`},
		"another encoding":                                   {"http: {}\nlog:\n  level: \xff\xfe\n", 3, 10, `the file is not UTF-8`},
		"a second document that is not YAML":                 {"http: {}\n---\nlog: [\n", 3, 6, `at "log:": the file ends inside`},
	} {
		t.Run(name, func(t *testing.T) {
			problems := ReadYAML("x.yaml", []byte(c.text), nil).Problems
			if len(problems) != 1 {
				t.Fatal(problems)
			}
			p := problems[0]
			if p.Line != c.line || p.Column != c.column || !strings.Contains(p.Message, c.says) {
				t.Errorf("line %d, column %d: %s; want line %d, column %d: %s", p.Line, p.Column, p.Message, c.line, c.column, c.says)
			}
			if strings.Contains(p.Message, "canary") {
				t.Error("a value is shown")
			}
		})
	}
}

// The cases are the text, the number of bytes that the search may parse, and the lines at which their faults
// are reported.
func TestAFaultInALongTextIsPinpointed(t *testing.T) {
	comments := strings.Repeat("# a comment\n", 500)
	for name, c := range map[string]struct {
		text  string
		bytes int
		line  int
		says  string
	}{
		"a mapping of 400 lines without its end": {"x: {\n" + strings.Repeat("  a: b,\n", 400), maxSearched, 1, "the file ends inside"},
		"a mapping of 48 KB without its end":     {"a: 1\nx: {\n" + strings.Repeat("  a: b,\n", 6<<10), maxSearched, 2, "the file ends inside"},
		"a list that many lines do not close":    {"a: [" + strings.Repeat("\n", 1<<17), maxSearched, 1, "the file ends inside"},
		"a long line":                            {"a: 1\nb: \"" + strings.Repeat("x", 1<<14), 1 << 16, 2, "the quoted text that begins here"},
		"many lines":                             {strings.Repeat("a: b\n", 1<<11) + " c: d\n", maxSearched, 1<<11 + 1, `a ":" is not allowed here`},
		"an alias after many lines":              {strings.Repeat(comments, 12) + "apiKey: *canary\n", maxSearched, 12*500 + 1, "* begins an alias"},
		"an alias beyond the bound":              {comments + "apiKey: *canary\n", 1 << 10, 0, "* begins an alias"},
		"a quote beyond the bound":               {comments + "apiKey: 'canary\n", 1 << 10, 501, "the quoted text"},
		"a tab beyond the bound":                 {comments + "a: b\n\tcanary\n", 1 << 10, 502, "there is a tab"},
		"a key beyond the bound":                 {comments + "a:\n  b: c\n d: e\n", 1 << 10, 501, "a key is expected here"},
		"a mapping beyond the bound":             {comments + "a: {b: canary\n", 1 << 10, 501, "is not closed"},
		"an open list beyond the bound":          {comments + "a: [\n", 1 << 10, 502, "a value is expected here"},
	} {
		t.Run(name, func(t *testing.T) {
			f := findFault(c.text, c.bytes)
			if f.line != c.line || !strings.Contains(f.message, c.says) || strings.Contains(f.message, "canary") {
				t.Errorf("line %d: %.200s; want line %d: %s", f.line, f.message, c.line, c.says)
			}
		})
	}
}

func TestTheSearchForAnUnclosedBracketIsBounded(t *testing.T) {
	s := &search{text: strings.Repeat("x: {\n", 200), left: 1 << 14}
	if line := s.opened(); line < 1 || s.left > 0 {
		t.Errorf("line %d, %d bytes of the budget remain", line, s.left)
	}
	before := s.left
	if _, _, searched := s.parse("a: b"); searched || s.left >= before {
		t.Error("a text was parsed beyond the bound")
	}
}
