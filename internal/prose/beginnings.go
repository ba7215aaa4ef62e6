package prose

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// beginnings returns texts of which one begins each match of a pattern. Most lines contain none of
// them at the start of a word, so that the expression itself is rarely needed.
// The words of a phrase are separated by spaces: a phrase is not found inside an identifier.
func beginnings(pattern string) ([]string, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	all := begin(parsed)
	if all == nil {
		return nil, fmt.Errorf("%s: a rule begins with a word, not with a character class or what may be absent", pattern)
	}
	return all, nil
}

func begin(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return begin(re.Sub[0])
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			of := begin(sub)
			if of == nil {
				return nil
			}
			all = append(all, of...)
		}
		return all
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if sub.Op != syntax.OpWordBoundary {
				return begin(sub)
			}
		}
		return nil
	default: // what may be absent, or is one of many characters
		return nil
	}
}

// spellings returns a beginning as it is written at the start of a word: word, Word and WORD.
func spellings(beginning string) []string {
	return []string{beginning, strings.ToUpper(beginning[:1]) + beginning[1:], strings.ToUpper(beginning)}
}

// wordFrom returns where, at from or later, a word of the text is written like this, -1 for nowhere.
func wordFrom(text, beginning string, from int) int {
	for at := from; ; at++ {
		i := strings.Index(text[at:], beginning)
		if i < 0 {
			return -1
		}
		if at += i; at == 0 || !lower(text[at-1]) || !lower(text[at]) {
			return at
		}
	}
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }
