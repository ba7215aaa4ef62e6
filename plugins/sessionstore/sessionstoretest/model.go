package sessionstoretest

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// The methods of an Operation.
const (
	methodPut     = "Put"
	methodGet     = "Get"
	methodTouch   = "Touch"
	methodDelete  = "Delete"
	methodReplace = "Replace"
)

// The answers of an Operation.
const (
	answerOK       = "OK"
	answerNotFound = "NOT_FOUND"
	answerInvalid  = "INVALID_ARGUMENT" // nothing was done
	answerUnseen   = "unseen"           // the call may or may not have taken effect
)

// Operation is the effect of one call on one session, with its answer. A Touch of several sessions is several
// operations. Times are relative to the start of the history.
type Operation struct {
	Client   int                 `json:"client"`
	Method   string              `json:"method"`
	ID       string              `json:"id"`
	Record   sessionstore.Record `json:"record,omitzero"` // for Put and Replace
	Accessed time.Time           `json:"accessed,omitzero"`
	TTL      time.Duration       `json:"ttl,omitempty"`
	Owner    string              `json:"owner,omitempty"` // the expected owner, for Replace
	Call     time.Duration       `json:"call"`
	Return   time.Duration       `json:"return"` // the last time at which the call can take effect

	Answer   string              `json:"answer"`
	Error    string              `json:"error,omitempty"` // why the outcome is unseen
	Got      sessionstore.Record `json:"got,omitzero"`
	Expires  time.Time           `json:"expires,omitzero"` // as reported by the store
	Replaced bool                `json:"replaced,omitempty"`

	pending bool // it had not returned yet: its answer does not count
}

// History holds recorded calls and what is needed to check them again.
type History struct {
	Began    time.Time   `json:"began"`
	Replaces bool        `json:"replaces"`         // the store has the capability "replace"
	Behind   *Window     `json:"behind,omitempty"` // how far the store's clock is behind the kit's, if known
	Calls    []Operation `json:"calls"`
	Events   []Event     `json:"events,omitempty"`
}

// Event is something that the kit did to the store during a history.
type Event struct {
	At   time.Duration `json:"at"`
	What string        `json:"what"`
}

// Window is a time known only to lie between two bounds.
type Window struct {
	From  time.Duration `json:"from"`
	Until time.Duration `json:"until"`
}

const (
	slack  = time.Second + 50*time.Millisecond // how late a session may expire, plus the clock's own steps
	early  = 20 * time.Millisecond             // how early, for clocks that count in milliseconds
	unseen = 300 * time.Millisecond            // how long after its deadline a call may take effect
)

// world is a possible state of a session.
type world struct {
	written  *sessionstore.Record // as put or replaced; nil if there is no session
	accessed int64                // the newest access time, in Unix milliseconds
	over     Window               // when its lifetime ends
}

// record returns the session's record.
func (w world) record() sessionstore.Record {
	rec := *w.written
	rec.LastAccessedAt = time.UnixMilli(w.accessed).UTC()
	return rec
}

// there reports whether an operation may find the session.
func (w world) there(op Operation) bool { return w.written != nil && op.Call < w.over.Until+slack }

// absent reports whether an operation may find no session.
func (w world) absent(op Operation) bool {
	return w.written == nil || op.Return >= w.over.From-early
}

// input is an operation with the part of its record that a store must keep.
type input struct {
	Operation
	record *sessionstore.Record // as put, replaced or returned by Get
}

// step returns the possible states of the session after an operation, given the state before. It returns none if the
// answer is impossible.
func (h *History) step(w world, op input) (next []world) {
	var before []world
	if w.there(op.Operation) {
		before = append(before, w)
	}
	if w.absent(op.Operation) {
		before = append(before, world{})
	}
	for _, w := range before {
		after, fits := h.effect(w, op)
		if op.Answer == answerUnseen || op.pending {
			next = append(next, w, after)
		} else if fits {
			next = append(next, after)
		}
	}
	return next
}

// effect returns the state of the session after the operation took effect, and whether the answer is correct in that
// case.
func (h *History) effect(w world, op input) (world, bool) {
	renewed := Window{op.Call + op.TTL, op.Return + op.TTL}
	there := w.written != nil
	if op.Answer == answerInvalid {
		return w, true
	}
	switch op.Method {
	case methodPut:
		return world{op.record, op.record.LastAccessedAt.UnixMilli(), renewed}, op.Answer == answerOK
	case methodDelete:
		return world{}, op.Answer == answerOK
	case methodTouch:
		if there {
			w.over, w.accessed = renewed, max(w.accessed, op.Accessed.UnixMilli())
		}
		return w, op.Answer == answerOK
	case methodReplace:
		if !there {
			return w, op.Answer == answerNotFound
		}
		if w.written.Owner != op.Owner {
			return w, op.Answer == answerOK && !op.Replaced
		}
		w.written, w.accessed = op.record, op.record.LastAccessedAt.UnixMilli()
		if op.TTL > 0 {
			w.over = renewed
		}
		return w, op.Answer == answerOK && op.Replaced
	}
	if !there {
		return w, op.Answer == answerNotFound
	}
	return w, op.Answer == answerOK && op.record.Subject == w.written.Subject && *op.record == w.record() && h.expiresThen(op.Operation, w.over)
}

// input prepares an operation for the model.
func (h *History) input(op Operation) input {
	rec := op.Record
	if op.Method == methodGet {
		rec = op.Got
	}
	rec = h.kept(rec)
	return input{op, &rec}
}

// kept returns the part of a record that a store must keep.
func (h *History) kept(rec sessionstore.Record) sessionstore.Record {
	rec.ExpiresAt, rec.CreatedAt, rec.LastAccessedAt = time.Time{}, millis(rec.CreatedAt), millis(rec.LastAccessedAt)
	if !h.Replaces {
		rec.Owner, rec.State = "", ""
	}
	return rec
}

func millis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// expiresThen reports whether the expiry that a Get reported fits the lifetime. It returns true if the Get reported
// none, or if the store's clock is unknown.
func (h *History) expiresThen(op Operation, over Window) bool {
	if op.Expires.IsZero() || h.Behind == nil {
		return true
	}
	at := op.Expires.Sub(h.Began)
	return at >= over.From-h.Behind.Until-slack && at <= over.Until-h.Behind.From+slack
}

// patience is how long the search for an order may take per session.
const patience = 20 * time.Second

// Check returns nil if the answers fit some order of the calls, a *kit.Failure if they do not, and a kit.CannotJudge
// error if the search took too long.
func (h *History) Check() error {
	byID := map[string][]Operation{}
	var ids []string
	for _, op := range h.Calls {
		if op.Method == methodGet && op.Answer == answerUnseen { // the call changed nothing and returned nothing
			continue
		}
		if byID[op.ID] == nil {
			ids = append(ids, op.ID)
		}
		byID[op.ID] = append(byID[op.ID], op)
	}
	undecided := 0
	for _, id := range ids {
		switch h.order(byID[id]) {
		case porcupine.Illegal:
			return h.failure(byID[id])
		case porcupine.Unknown:
			undecided++
		}
	}
	if undecided > 0 {
		return kit.CannotJudge("no order of the calls was found or ruled out for %d of %d sessions within %v", undecided, len(ids), patience)
	}
	return nil
}

// order searches for an order of the operations on one session that explains all answers.
func (h *History) order(ops []Operation) porcupine.CheckResult {
	model := porcupine.NondeterministicModel{
		Init:  func() []any { return []any{world{}} },
		Step:  func(state, op, _ any) []any { return anys(h.step(state.(world), op.(input))) },
		Equal: func(a, b any) bool { return a == b },
	}
	calls := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		calls[i] = porcupine.Operation{ClientId: op.Client, Input: h.input(op), Call: int64(op.Call), Return: int64(op.Return)}
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), calls, patience)
}

func anys[T any](all []T) []any {
	list := make([]any, len(all))
	for i, v := range all {
		list[i] = v
	}
	return list
}
