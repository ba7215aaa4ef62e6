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

// failure describes the first answer that fits no order of the operations on one session. Its history ends there, and
// is shortened. A call that the model allows to have taken effect only until a certain time, but that would explain the
// answer if it took effect later, is what the failure is about.
func (h *History) failure(ops []Operation) *kit.Failure {
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(a.Return, b.Return) })
	last := ops[sort.Search(len(ops)-1, func(i int) bool { return h.wrong(until(ops, ops[i])) })]
	ops = until(ops, last)
	effect := last // or the call that took effect too late
	if i := slices.IndexFunc(ops, func(op Operation) bool { return h.fitsLater(ops, op, last) }); i >= 0 {
		effect = ops[i]
	}
	lines, at := h.lines(h.shortest(ops, last, effect), last, effect)
	f := kit.NewFailure(h.answer(last), "an answer that fits some order of the calls that overlap", sentenceOrder, lines...)
	f.Failing = at[0]
	if effect != last {
		f.Demanded, f.Sentence = fmt.Sprintf("the %s of line %d to have no effect after %s", effect.Method, at[1], clock(effect.Return)), sentenceLate
	} else if worlds := h.before(ops, last); len(worlds) > 0 {
		touched := slices.ContainsFunc(ops, func(op Operation) bool { return op.Method == methodTouch })
		f.Answered, f.Demanded, f.Sentence = h.answer(last, h.alike(worlds, last)...), h.demand(worlds, last), sentenceFor(worlds, last, touched)
	}
	return f
}

// wrong reports whether the operations on one session fit no order.
func (h *History) wrong(ops []Operation) bool { return h.order(ops) == porcupine.Illegal }

// fitsLater reports whether all answers would fit if an unseen operation could take effect until last returned.
func (h *History) fitsLater(ops []Operation, op, last Operation) bool {
	if op.Answer != answerUnseen || op.Return >= last.Return {
		return false
	}
	ops = slices.Clone(ops)
	ops[slices.Index(ops, op)].Return = last.Return
	return h.order(ops) == porcupine.Ok
}

// shortest leaves out the operations that the failure of last does not need: those without which the rest fits no order
// either and demands the same. It keeps those that were refused, and those that wrote what the answer shows. If what is
// demanded is unknown, it leaves out reads only.
func (h *History) shortest(ops []Operation, last, kept Operation) []Operation {
	demanded := h.demand(h.before(ops, last), last)
	for i := len(ops) - 1; i >= 0; i-- {
		op, rest := ops[i], slices.Delete(slices.Clone(ops), i, i+1)
		shown := op.Record.ID != "" && op.Record.Subject == last.Got.Subject || op.Method == methodTouch && op.Accessed.Equal(last.Got.LastAccessedAt)
		if op == last || op == kept || shown || op.Answer == answerInvalid || !h.wrong(rest) {
			continue
		}
		if demanded == "" && op.Method == methodGet || demanded != "" && h.demand(h.before(rest, last), last) == demanded {
			ops = rest
		}
	}
	return ops
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
	slices.Sort(all) // the same for every history that allows the same
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

// alike returns the names of the fields in the answer to a Get that are as in every record that was allowed. It never
// returns those that identify a record.
func (h *History) alike(worlds []world, get Operation) (names []string) {
	worlds = slices.DeleteFunc(slices.Clone(worlds), func(w world) bool { return !w.there(get) })
	for i, f := range fields(h.kept(get.Got)) {
		differs := func(w world) bool { return fields(w.record())[i].text != f.text }
		if i > 1 && len(worlds) > 0 && !slices.ContainsFunc(worlds, differs) {
			names = append(names, f.name)
		}
	}
	return names
}

// String returns the window in the form used in reports: from the start of the history.
func (w Window) String() string {
	from, until := clock(w.From), clock(w.Until)
	switch {
	case from == until:
		return until
	case w.Until < time.Hour:
		from = strings.TrimSuffix(from, "s")
	}
	return from + "–" + until
}

// clock returns a time from the start of the history in the form used in reports.
func clock(at time.Duration) string {
	if at < time.Hour {
		return fmt.Sprintf("%.3fs", at.Seconds())
	}
	return span(at.Round(time.Millisecond))
}

// span returns a duration with its days, if it has any: 29d11h0m59s.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%dd%v", d/day, d%day)
}

// lines returns the operations and the events before the last of them in the form used in reports, and the numbers of the
// lines with the given operations. The touches of a batch are one line.
func (h *History) lines(ops []Operation, of ...Operation) (lines []string, at []int) {
	ops, events, at := slices.Clone(ops), h.Events, make([]int, len(of))
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	for len(ops) > 0 {
		if len(events) > 0 && events[0].At < ops[0].Call {
			lines = append(lines, clock(events[0].At)+" "+events[0].What)
			events = events[1:]
			continue
		}
		n := 1
		for n < len(ops) && ops[n].Method == methodTouch && ops[n].Call == ops[0].Call && ops[n].Client == ops[0].Client {
			n++
		}
		lines = append(lines, h.line(ops[:n]))
		for i := range of {
			if slices.Contains(ops[:n], of[i]) {
				at[i] = len(lines)
			}
		}
		ops = ops[n:]
	}
	return lines, at
}

// line returns one call in the form used in reports.
func (h *History) line(ops []Operation) string {
	op := ops[0]
	args := shortened(op.ID)
	switch op.Method {
	case methodPut:
		args = fmt.Sprintf("%s, for %s", show(op.Record), span(op.TTL))
	case methodTouch:
		for i, op := range ops {
			if i > 0 {
				args += "; again"
			}
			args += fmt.Sprintf(", last accessed %s, for %s", op.Accessed.UTC().Format(timeFormat), span(op.TTL))
		}
	case methodReplace:
		lives := "with its lifetime unchanged"
		if op.TTL != 0 {
			lives = "for " + span(op.TTL)
		}
		args = fmt.Sprintf("%s, %s, expecting the owner %s", show(op.Record), lives, shortened(op.Owner))
	}
	when := clock(op.Call)
	if op.Answer != answerUnseen {
		when = Window{op.Call, op.Return}.String()
	}
	return fmt.Sprintf("%s client %d: %s(%s) -> %s", when, op.Client, op.Method, args, h.answer(op))
}

const timeFormat = "2006-01-02T15:04:05.000"

// answer returns the answer of an operation in the form used in reports. The named fields of a record are omitted.
func (h *History) answer(op Operation, omitted ...string) string {
	switch {
	case op.Answer == answerUnseen:
		return fmt.Sprintf("%s, so it takes effect before %s or never", cmp.Or(op.Error, "no answer"), clock(op.Return))
	case op.Method == methodReplace && op.Answer == answerOK:
		return fmt.Sprintf("replaced: %t", op.Replaced)
	case op.Method == methodGet && op.Answer == answerOK:
		text := show(op.Got, omitted...)
		if !op.Expires.IsZero() {
			at := op.Expires.Sub(h.Began)
			if h.Behind != nil {
				at += (h.Behind.From + h.Behind.Until) / 2
			}
			text += ", expires at " + clock(at)
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
		{"client name", rec.ClientInfo.Name}, {"client version", rec.ClientInfo.Version}, {"owner", rec.Owner}, {"state", rec.State},
		{"created", when(rec.CreatedAt)}, {"accessed", when(rec.LastAccessedAt)},
	}
}

// show returns a record without its empty fields and without those that are omitted.
func show(rec sessionstore.Record, omitted ...string) string {
	var parts []string
	for _, f := range fields(rec) {
		switch {
		case f.text == "":
		case !slices.Contains(omitted, f.name):
			parts = append(parts, f.name+" "+f.shown())
		case len(parts) == 0 || parts[len(parts)-1] != "…":
			parts = append(parts, "…")
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
