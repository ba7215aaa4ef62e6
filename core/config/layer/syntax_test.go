package layer

import (
	"strings"
	"testing"
)

// TestTextThatIsNotYAMLIsReportedAtItsLineAndColumn has broken files and the line, the column and the beginning of
// what is said of each.
func TestTextThatIsNotYAMLIsReportedAtItsLineAndColumn(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		line, column int
		says         string
	}{
		"a quote without its end":           {"log:\n  level: \"info\nhttp:\n  port: 80\n", 2, 10, `at "level:": the quoted text that begins here has no closing quote`},
		"a quote after closed ones":         {"a: 'x'\nlog: {level: \"info\", format: \"json}\n", 2, 30, `at "log:": the quoted text`},
		"a quote on the first line":         {"log: \"x\n", 1, 6, `at "log:": the quoted text`},
		"lines that end as on Windows":      {"log:\r\n  level: 'info\r\nhttp: {}\r\n", 2, 10, `at "level:": the quoted text`},
		"a byte order mark":                 {"\ufefflog:\n  level: 'info\nhttp: {}\n", 2, 10, `at "level:": the quoted text`},
		"a tab":                             {"log:\n  level: info\nhttp:\n\tport: 80\n", 4, 1, `at "port:": found character that cannot start any token (YAML is indented with spaces`},
		"a key that is indented less":       {"# a\n\nhttp:\n    port: 80\n  host: x\nlog: {}\n", 5, 3, `at "host:": a key is expected here`},
		"a key that is indented more":       {"log:\n  level: info\n    format: json\nhttp: {}\n", 3, 11, `at "format:": a ":" is not allowed here`},
		"a key between two columns":         {"http:\n  port: 80\n host: x\nlog: {}\n", 3, 2, `at "host:": a key is expected here`},
		"an item among keys":                {"http:\n  port: 80\n  - x\n", 3, 3, `a key is expected here`},
		"a key outside of its item":         {"registries:\n- adapter: directory\n name: x\n", 3, 2, `at "name:": a key is expected here`},
		"a key without a colon":             {"http:\n  host: b\n  port\nlog: {}\n", 3, 3, `a ":" is expected after this key`},
		"text after a quote":                {"log:\n  level: \"info\" x\nhttp: {}\n", 2, 17, `at "level:": a key is expected here`},
		"a colon in a text":                 {"http:\n  host: a: b\nlog: {}\n", 2, 10, `at "host:": a ":" is not allowed here`},
		"a list without its end":            {"http:\n  trustedProxies: [a, b\n  port: 80\nlog: {}\n", 2, 0, `at "trustedProxies:": a "[" on this line is not closed with "]", or a comma is missing between here and line 4`},
		"a mapping without its end":         {"http: {}\nlog: {\n  level: info,\n  format: json\n", 2, 0, `at "log:": a "{" on this line is not closed with "}", or a comma is missing between here and the end of the file`},
		"a file that ends inside a list":    {"http: {}\nlog: {\n  level: info,\n  format: [\n\n", 2, 6, `at "log:": the file ends inside a list or mapping`},
		"a bracket that closes nothing":     {"http: {}\nlog: ]\n", 2, 6, `at "log:": a value is expected here`},
		"an alias of nothing":               {"http: {}\napiKey: *canary\nlog: {}\n", 2, 10, `at "apiKey:": * begins an alias`},
		"an escape that does not exist":     {"http: {}\nlog:\n  level: \"in\\qfo\"\n", 3, 13, `at "level:": there is no such escape`},
		"a control character":               {"http: {}\nlog: \x01\n", 2, 6, `the control character U+0001 is not allowed`},
		"another encoding":                  {"http: {}\nlog:\n  level: \xff\xfe\n", 3, 10, `the file is not UTF-8`},
		"a second document that is no YAML": {"http: {}\n---\nlog: [\n", 3, 6, `at "log:": the file ends inside`},
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

func TestThePlaceOfAFaultIsNotSearchedInALongText(t *testing.T) {
	for name, text := range map[string]string{
		"a list that many lines do not close": "a: [" + strings.Repeat("\n", 1<<20),
		"a long line":                         "a: \"" + strings.Repeat("x", 1<<20),
		"many lines":                          strings.Repeat("a: b\n", 1<<16) + " c: d\n",
	} {
		problems := ReadYAML("x.yaml", []byte(text), nil).Problems
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "not YAML: ") || problems[0].Column != 0 {
			t.Errorf("%s: got %+v", name, problems)
		}
	}
}
