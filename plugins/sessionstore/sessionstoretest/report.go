package sessionstoretest

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// failure describes the first answer that fits no order of the operations on one session. Its history ends there. Reads
// are left out if the rest still fits no order without them.
func (h *History) failure(ops []Operation) *kit.Failure {
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(a.Return, b.Return) })
	wrong := func(ops []Operation) bool { return h.order(ops) == porcupine.Illegal }
	last := ops[sort.Search(len(ops)-1, func(i int) bool { return wrong(until(ops, ops[i])) })]
	ops = until(ops, last)
	for i := len(ops) - 1; i >= 0; i-- {
		if without := slices.Delete(slices.Clone(ops), i, i+1); ops[i].Method == methodGet && ops[i] != last && wrong(without) {
			ops = without
		}
	}
	f := kit.NewFailure(h.answer(last), "an answer that fits some order of the calls that overlap", sentenceOrder, h.lines(ops)...)
	if worlds := h.before(ops, last); len(worlds) > 0 {
		touched := slices.ContainsFunc(ops, func(op Operation) bool { return op.Method == methodTouch })
		f.Demanded, f.Sentence = h.demand(worlds, last), sentenceFor(worlds, last, touched)
	}
	return f
}

// until returns the operations that began before last returned. The answers of those that returned later do not count.
func until(ops []Operation, last Operation) (known []Operation) {
	for _, op := range ops {
		op.pending = op.Return > last.Return
		if op.Call < last.Return && (op.Method != methodGet || !op.pending) {
			known = append(known, op)
		}
	}
	return known
}

// before returns the states in which last may find the session. To find them, it tries every order of the other
// operations that explains their answers, and every place for last in it. It returns none if there are too many orders
// to try.
func (h *History) before(ops []Operation, last Operation) (worlds []world) {
	const most = 100_000
	type place struct {
		done  string
		world world
	}
	var others []input
	for _, op := range ops {
		if op != last {
			others = append(others, h.input(op))
		}
	}
	seen, done := map[place]bool{}, make([]byte, len(others))
	var explore func(w world) bool // reports whether the operations that are not done fit too
	explore = func(w world) bool {
		here := place{string(done), w}
		if fits, ok := seen[here]; ok || len(seen) > most {
			return fits
		}
		all, due, next := true, false, time.Duration(-1)
		for i, op := range others {
			if done[i] == 0 {
				all, due = all && op.pending, due || op.Return < last.Call
				if next < 0 || op.Return < next {
					next = op.Return
				}
			}
		}
		fits := all
		for i, op := range others {
			if done[i] == 1 || op.Call > next {
				continue
			}
			done[i] = 1
			for _, w := range h.step(w, op) {
				fits = explore(w) || fits
			}
			done[i] = 0
		}
		if seen[here] = fits; fits && !due {
			worlds = append(worlds, w)
		}
		return fits
	}
	if explore(world{}); len(seen) > most {
		return nil
	}
	return worlds
}

// demand describes the allowed answers.
func (h *History) demand(worlds []world, last Operation) string {
	var all []string
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, w := range worlds {
		switch {
		case !w.there(last):
		case last.Method == methodReplace:
			add("replaced: %t, because its owner is %s", w.written.Owner == last.Owner, shortened(w.written.Owner))
		default:
			add("%s", h.correction(w, last))
		}
		switch {
		case w.written == nil:
			add("%s", answerNotFound)
		case w.absent(last):
			add("%s, because the lifetime ended at %s", answerNotFound, w.over)
		}
	}
	const most = 4
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("one of %d other answers", len(all)-most))
	}
	return strings.Join(all, "; or ")
}

// correction describes the answer to a Get. If the plugin returned the right record with wrong contents, it says only
// what was wrong.
func (h *History) correction(w world, get Operation) string {
	right, got := fields(w.record()), fields(h.kept(get.Got))
	switch {
	case get.Answer != answerOK:
		return fmt.Sprintf("the session, which lives until %s", w.over)
	case get.Got.Subject != w.written.Subject:
		return fmt.Sprintf("%s, which lives until %s", show(w.record()), w.over)
	}
	var wrong []string
	for i, f := range right {
		if f.text != got[i].text {
			wrong = append(wrong, fmt.Sprintf("%s %s in place of %s", f.name, f.shown(), got[i].shown()))
		}
	}
	if len(wrong) == 0 {
		return fmt.Sprintf("the same, but expires at %s", w.over)
	}
	return "the same, but " + strings.Join(wrong, ", ")
}

// String returns the window in the form used in reports: in seconds from the start of the history.
func (w Window) String() string {
	from, until := fmt.Sprintf("%.3f", w.From.Seconds()), fmt.Sprintf("%.3fs", w.Until.Seconds())
	if from+"s" == until {
		return until
	}
	return from + "–" + until
}

// lines returns the operations and the events before the last of them in the form used in reports. The touches of a batch
// are one line.
func (h *History) lines(ops []Operation) (lines []string) {
	ops, events := slices.Clone(ops), h.Events
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	for len(ops) > 0 {
		if len(events) > 0 && events[0].At < ops[0].Call {
			lines = append(lines, fmt.Sprintf("%.3fs %s", events[0].At.Seconds(), events[0].What))
			events = events[1:]
			continue
		}
		n := 1
		for n < len(ops) && ops[n].Method == methodTouch && ops[n].Call == ops[0].Call && ops[n].Client == ops[0].Client {
			n++
		}
		lines = append(lines, h.line(ops[:n]))
		ops = ops[n:]
	}
	return lines
}

// line returns one call in the form used in reports.
func (h *History) line(ops []Operation) string {
	op := ops[0]
	args := shortened(op.ID)
	switch op.Method {
	case methodPut:
		args = fmt.Sprintf("%s, for %v", show(op.Record), op.TTL)
	case methodTouch:
		for i, op := range ops {
			if i > 0 {
				args += "; again"
			}
			args += fmt.Sprintf(", last accessed %s, for %v", op.Accessed.UTC().Format(timeFormat), op.TTL)
		}
	case methodReplace:
		lives := "with its lifetime unchanged"
		if op.TTL != 0 {
			lives = fmt.Sprintf("for %v", op.TTL)
		}
		args = fmt.Sprintf("%s, %s, expecting the owner %s", show(op.Record), lives, shortened(op.Owner))
	}
	when := fmt.Sprintf("%.3fs", op.Call.Seconds())
	if op.Answer != answerUnseen {
		when = Window{op.Call, op.Return}.String()
	}
	return fmt.Sprintf("%s client %d: %s(%s) -> %s", when, op.Client, op.Method, args, h.answer(op))
}

const timeFormat = "2006-01-02T15:04:05.000"

func (h *History) answer(op Operation) string {
	switch {
	case op.Answer == answerUnseen:
		return fmt.Sprintf("%s, so it takes effect before %.3fs or never", cmp.Or(op.Error, "no answer"), op.Return.Seconds())
	case op.Method == methodReplace && op.Answer == answerOK:
		return fmt.Sprintf("replaced: %t", op.Replaced)
	case op.Method == methodGet && op.Answer == answerOK:
		text := show(op.Got)
		if !op.Expires.IsZero() {
			at := op.Expires.Sub(h.Began)
			if h.Behind != nil {
				at += (h.Behind.From + h.Behind.Until) / 2
			}
			text += fmt.Sprintf(", expires at %.3fs", at.Seconds())
		}
		return text
	}
	return op.Answer
}

// field is a field of a record. Empty fields have no text.
type field struct{ name, text string }

func (f field) shown() string {
	switch {
	case f.text == "":
		return "none"
	case f.name == "created" || f.name == "accessed":
		return f.text
	}
	return shortened(f.text)
}

func fields(rec sessionstore.Record) []field {
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(timeFormat)
	}
	return []field{
		{"id", rec.ID}, {"subject", rec.Subject}, {"issuer", rec.Issuer}, {"workspace", rec.WorkspaceID}, {"protocol", rec.ProtocolVersion},
		{"client", rec.ClientInfo.Name}, {"version", rec.ClientInfo.Version}, {"owner", rec.Owner}, {"state", rec.State},
		{"created", when(rec.CreatedAt)}, {"accessed", when(rec.LastAccessedAt)},
	}
}

// show returns a record without its empty fields.
func show(rec sessionstore.Record) string {
	var parts []string
	for _, f := range fields(rec) {
		if f.text != "" {
			parts = append(parts, f.name+" "+f.shown())
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func shortened(text string) string {
	if len(text) <= 48 {
		return fmt.Sprintf("%+q", text)
	}
	return fmt.Sprintf("%+q…%+q of %d bytes", text[:16], text[len(text)-16:], len(text))
}
