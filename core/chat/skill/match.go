package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// keywordsNeeded is how many keywords a message must hold to ask for a skill.
const keywordsNeeded = 2

// Match is the skill that a message asks for, nil when there is none: the first one a trigger of
// which is in the message, whatever its case; else the one with the most keywords in it, at least
// two, the first of equals. A keyword counts where a word begins, so that "table" is in "tables"
// and not in "stable".
func Match(skills []Skill, message string) *Skill {
	message = strings.ToLower(message)
	var best *Skill
	most := keywordsNeeded - 1
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
		if n := hits(s.Keywords, message); n > most {
			best, most = &skills[i], n
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

// begins reports whether a word of message begins with word.
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
