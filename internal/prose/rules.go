package prose

import "regexp"

// rule forbids what pattern matches, unless one of except matches the same line.
type rule struct {
	pattern string // a regular expression over lower-case text in which identifiers are split into words
	use     string // what to write instead
	except  string // a regular expression over the line as it is written
}

// rules are the words that the code base has replaced. A word is here when it was once used for
// something that has a common name; it is excepted where it means what everybody means by it.
func rules() []rule {
	return []rule{
		{pattern: `\byards?\b`, use: "apps.Manager"},
		{pattern: `\b(annex(es)?|births?|unborn)\b`, use: "instance, session pool"},
		{pattern: `\bflights?\b`, use: "in-flight call, pending call", except: `(?i)\b(in|single)[ -]?flight|singleflight|preflight`},
		{pattern: `\berrands?\b`, use: "peer request, in-flight call"},
		{pattern: `\bpark(s|ed|ing)?\b`, use: "suspended"},
		{pattern: `\b(habits?|traits?)\b`, use: "capabilities", except: `async_trait`},
		{pattern: `\btold\b`, use: "notified, sent, published; say who does what"},
		{pattern: `\b(pursuits?|abreast)\b`, use: "reconcile"},
		{pattern: `\bears\b`, use: "peer server, listener"},
		{pattern: `\bscribes?\b`, use: "group commit"},
		{pattern: `\b(packers?|shelves|shelf)\b`, use: "index, compaction", except: `INSERT INTO .*\bshel(f|ves)\b`}, // tables before 00011_plain_names.sql
		{pattern: `\bcouriers?\b`, use: "transport"},
		{pattern: `\bledgers?\b`, use: "session writer"},
		{pattern: `\b(modern|novel|eras?)\b`, use: "stateless, protocol revision"},
		{pattern: `\bpowers\b`, use: "capabilities", except: `GetPowers\(\)|\b[Pp]owers:|\bpowers=\[|info\.Powers\b|repeated string powers`}, // a field of plugin.proto
		{pattern: `\bwires\b`, use: "protocol versions"},
		{pattern: `\b(doors?|halls?|houses?|treat(y|ies))\b`, use: "package, HTTP API, MCP endpoint, namespace, contract"},
		{pattern: `\brooms?\b`, use: "package", except: `(?i)\b(more|no|makes?|made|making|leaves?|enough) room\b|\broom (for|to)\b`},
		{pattern: `\bwalks?\b`, use: "path, steps", except: `(?i)\bwalk(dir|func)?\(|filepath\.walk|fs\.walk|\.walk\b|\bfunc walk|\bwalk(s|ed)? (the|a|its|over|through|all|each|every)\b`},
		{pattern: `\bheed(s|ed|ing)?\b`, use: "honour, respect, apply"},
		{pattern: `\bnobody knows\b`, use: "unknown; name the subject"},
		{pattern: `\bit is somebody's\b`, use: "name the subject"},
		{pattern: `\bwhat is no\b`, use: "anything but a ..., invalid ..."},
		{pattern: `\bspec(ification)? (part|rule)?s? ?[0-9]`, use: "docs/api.md and its section", except: `(?i)\b(mcp|openapi|json schema|http|oauth|rfc ?[0-9]+) spec`},
		{pattern: `\bcontract(,)? (parts? )?[0-9]`, use: "docs/api.md and its section"},
		{pattern: `\bhardening\b.{0,12}\brows?\b`, use: "docs/security.md and its row"},
		{pattern: `\b(shared/|hardening\.md|contract\.md|spec\.md)`, use: "a document of this repository"},
	}
}

// compiled is a rule ready for use.
type compiled struct {
	rule
	match, except *regexp.Regexp
	beginnings    []string // of which one begins each match
}

func compile() ([]compiled, error) {
	var all []compiled
	for _, r := range rules() {
		start, err := beginnings(r.pattern)
		if err != nil {
			return nil, err
		}
		c := compiled{rule: r, match: regexp.MustCompile(r.pattern)}
		for _, b := range start {
			c.beginnings = append(c.beginnings, spellings(b)...)
		}
		if r.except != "" {
			c.except = regexp.MustCompile(r.except)
		}
		all = append(all, c)
	}
	return all, nil
}
