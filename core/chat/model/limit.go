package model

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minAnswer is the smallest answer limit that AnswerLimit returns, in tokens.
const minAnswer = 256

var (
	numbers    = regexp.MustCompile(`\d+`)
	windowSize = regexp.MustCompile("maximum context length is (\\d+)|context limit: \\d+ \\+ \\d+ > (\\d+)|max_new_tokens`? must be <= (\\d+)")
	limitName  = regexp.MustCompile(`max_(?:completion_|new_)?tokens|maximum tokens|maxoutputtokens`)
	limitWords = regexp.MustCompile(`too large|too high|range|less than or equal|at most|maximum|exceed|> ?\d|<=`)
)

// AnswerLimit returns a lower limit on the answer's tokens, for another attempt. It returns 0 unless the model
// rejected the request because asked, the limit so far, is too high.
func (e *Error) AnswerLimit(asked int) int {
	complaint := strings.ToLower(e.Param + " " + e.Message)
	if window := windowSize.FindStringSubmatch(complaint); window != nil { // the messages need space in the window too
		size, _ := strconv.Atoi(strings.Join(window[1:], ""))
		if limitName.MatchString(complaint) || strings.Contains(complaint, "complet") {
			return lowered(asked, size/4)
		}
		return 0
	}
	if e.Failure == TooLong || !limitName.MatchString(complaint) || !limitWords.MatchString(complaint) || strings.Contains(complaint, "model output limit") {
		return 0
	}
	named := 0
	for _, digits := range numbers.FindAllString(complaint, -1) {
		if n, err := strconv.Atoi(digits); err == nil && n < asked {
			named = max(named, n)
		}
	}
	if named < minAnswer {
		named = asked / 2
	}
	return lowered(asked, named)
}

// lowered returns limit, or minAnswer if that is higher. It returns 0 if the result would not be lower than asked.
func lowered(asked, limit int) int {
	if limit = max(limit, minAnswer); limit < asked {
		return limit
	}
	return 0
}

// EffortSubstitutes contains the efforts that a model accepts instead of those that it rejected, in the order of Efforts.
type EffortSubstitutes [7]string

var effortWords = regexp.MustCompile(`\b(none|minimal|low|medium|high|xhigh|max)\b`)

// Of returns the effort that the model accepts instead of effort.
func (s *EffortSubstitutes) Of(effort string) string {
	for range s {
		i := slices.Index(Efforts(), effort)
		if i < 0 || s[i] == "" {
			break
		}
		effort = s[i]
	}
	return effort
}

// Learn records that the model rejected an effort, and uses the nearest one that its message names instead. It returns
// false if the message names none.
func (s *EffortSubstitutes) Learn(message, rejected string) bool {
	all := Efforts()
	at, nearest := slices.Index(all, rejected), ""
	distance := func(effort string) int {
		n := slices.Index(all, effort) - at
		return max(n, -n)
	}
	for _, word := range effortWords.FindAllString(strings.ToLower(message), -1) {
		if s.Of(word) != word || word == rejected {
			continue
		}
		if nearest == "" || distance(word) < distance(nearest) {
			nearest = word
		}
	}
	if at < 0 || nearest == "" || nearest == "none" && strings.Contains(message, "default") { // the model reasons by default, so "none" is not a substitute
		return false
	}
	s[at] = nearest
	return true
}
