package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// keywordsNeeded is how many keywords of a skill a message must contain to select it.
const keywordsNeeded = 2

// Match returns the skill that a message asks for, or nil if there is none. The first skill with a trigger in the
// message is used. Otherwise it is the skill with the most keywords in the message, if there are at least two; among
// equals, the first one. Case does not matter. A keyword only matches at the start of a word, so "table" matches
// "tables" but not "stable".
func Match(skills []Skill, message string) *Skill {
	message = strings.ToLower(message)
	var best *Skill
	maxHits := keywordsNeeded - 1
	for i, s := range skills {
		if s.Type != TypeSkill {
			continue
		}
		for _, t := range s.Triggers {
			if strings.Contains(message, strings.ToLower(t)) {
				return &skills[i]
			}
		}
	}
	for i, s := range skills {
		if s.Type != TypeSkill {
			continue
		}
		if n := hits(s.Keywords, message); n > maxHits {
			best, maxHits = &skills[i], n
		}
	}
	return best
}

func hits(keywords []string, message string) (n int) {
	for _, k := range keywords {
		if begins(message, strings.ToLower(k)) {
			n++
		}
	}
	return n
}

// begins reports whether a word of message starts with word.
func begins(message, word string) bool {
	for rest := message; word != ""; {
		at := strings.Index(rest, word)
		if at < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		if at == 0 && len(rest) == len(message) || at > 0 && !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			return true
		}
		rest = rest[at+len(word):]
		if rest == "" {
			return false
		}
	}
	return false
}
