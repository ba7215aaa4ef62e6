package sessionstoretest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// recorder makes calls and records them as a history. An answer that no history allows ends the recording.
type recorder struct {
	subject Subject
	limit   time.Duration // the deadline of calls that are not abandoned
	late    time.Duration // how long after its deadline a call may return, on a busy machine
	pending bool          // the store may be unable to reach its backend
	attempt string        // the id of the session of an attempt
	dying   atomic.Bool   // the store's process is being killed, so the effect of a call is unknown, whatever its answer

	mu      sync.Mutex
	history History
	latest  time.Duration // when a call last returned
	wrong   error         // the first answer that no history allows
}

func (s Subject) record(trial *kit.Trial) *recorder {
	_, replaces := s.Store.(sessionstore.Replacer)
	return &recorder{subject: s, limit: trial.Limit(10 * time.Second), late: trial.Limit(2 * time.Second), history: History{Began: time.Now(), Replaces: replaces, Behind: s.behind}}
}

// now returns the time since the start of the history.
func (r *recorder) now() time.Duration { return time.Since(r.history.Began) }

// do makes a client's call and records it: one operation, or a batch of touches. The call is abandoned after
// limit; 0 means the recorder's own limit.
func (r *recorder) do(ctx context.Context, client int, limit time.Duration, ops ...Operation) Operation {
	given := limit > 0
	if !given {
		limit = r.limit
	}
	store := r.subject.clients()[client%len(r.subject.clients())]
	called := r.follows(0)
	short, cancel := context.WithTimeout(ctx, limit)
	err := perform(short, store, ops)
	cancel()
	returned := r.follows(called)
	op := ops[0]
	for i := range ops {
		ops[i].Client, ops[i].Call, ops[i].Return = client, called, returned
		switch {
		case r.dying.Load():
			ops[i].Answer, ops[i].Error, ops[i].Return = answerUnseen, "its process was killed", called+limit+unseen
		case err == nil:
			ops[i].Answer = answerOK
		case errors.Is(err, plugins.ErrNotFound) && (op.Method == methodGet || op.Method == methodReplace):
			ops[i].Answer = answerNotFound
		default:
			ops[i].Answer, ops[i].Error, ops[i].Return = answerUnseen, kit.ErrorText(err), called+limit+unseen
		}
	}
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Calls = append(r.history.Calls, ops...)
	switch {
	case r.wrong != nil || ctx.Err() != nil || r.dying.Load():
	case returned > called+limit+r.late:
		r.reject(ops[0], fmt.Sprintf("it answered %v after its deadline", (returned-called-limit).Round(time.Millisecond)), "an answer soon after the deadline", sentenceDeadline)
	case ops[0].Answer != answerUnseen || (given || r.pending) && (late || errors.Is(err, plugins.ErrUnavailable)):
	case late:
		r.reject(ops[0], fmt.Sprintf("%s after %v", ops[0].Error, (returned-called).Round(time.Millisecond)), "an answer, because nothing was wrong with the backend", sentenceSucceeds)
	case errors.Is(err, plugins.ErrUnavailable):
		r.reject(ops[0], ops[0].Error, "an answer, because nothing was wrong with the backend", sentenceSucceeds)
	case r.pending:
		r.reject(ops[0], ops[0].Error, "UNAVAILABLE", sentenceUnavailable)
	default:
		r.reject(ops[0], ops[0].Error, "success", sentenceSucceeds)
	}
	return ops[0]
}

// follows returns a time later than other and than the return of the last call. A clock may return the same time twice,
// for example in a test with its own clock, but consecutive calls must not overlap.
func (r *recorder) follows(other time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := max(r.now(), r.latest+1, other+1)
	if other > 0 {
		r.latest = now
	}
	return now
}

// reject records an answer that no history allows.
func (r *recorder) reject(op Operation, answered, demanded, sentence string) {
	same := slices.DeleteFunc(slices.Clone(r.history.Calls), func(call Operation) bool { return call.ID != op.ID })
	lines, at := r.history.lines(same, op)
	failure := kit.NewFailure(answered, demanded, sentence, lines...)
	failure.Failing, r.wrong = at[0], failure
}

// happens records what the kit is doing to the store.
func (r *recorder) happens(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Events = append(r.history.Events, Event{r.now(), what})
}

// refused makes a call that the contract does not allow and that must be refused.
func (r *recorder) refused(ctx context.Context, client int, sentence string, ops ...Operation) {
	store := r.subject.clients()[client%len(r.subject.clients())]
	short, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	called := r.follows(0)
	err := perform(short, store, ops)
	returned := r.follows(called)
	answer, text := answerInvalid, ""
	switch {
	case err == nil:
		answer = answerOK
	case !errors.Is(err, plugins.ErrInvalid):
		answer, text = answerUnseen, kit.ErrorText(err)
	}
	for i := range ops {
		ops[i].Client, ops[i].Call, ops[i].Return, ops[i].Answer, ops[i].Error = client, called, returned, answer, text
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Calls = append(r.history.Calls, ops...)
	if answer != answerInvalid && ctx.Err() == nil && r.wrong == nil {
		lines, _ := r.history.lines(ops)
		r.wrong = kit.NewFailure(cmp.Or(text, r.history.answer(ops[0])), answerInvalid, sentence, lines...)
	}
}

// perform makes the call for one operation, or for the touches of a batch.
func perform(ctx context.Context, store sessionstore.Store, ops []Operation) (err error) {
	op := &ops[0]
	switch op.Method {
	case methodPut:
		return store.Put(ctx, op.Record, op.TTL)
	case methodDelete:
		return store.Delete(ctx, op.ID)
	case methodReplace:
		op.Replaced, err = store.(sessionstore.Replacer).Replace(ctx, op.Record, op.TTL, op.Owner)
		return err
	case methodGet:
		op.Got, err = store.Get(ctx, op.ID)
		op.Expires = op.Got.ExpiresAt
		op.Got.ExpiresAt = time.Time{}
		return err
	}
	batch := make([]sessionstore.Touch, len(ops))
	for i, op := range ops {
		batch[i] = sessionstore.Touch{ID: op.ID, LastAccessedAt: op.Accessed, TTL: op.TTL}
	}
	return store.Touch(ctx, batch)
}

// check ends the property if the recorded history does not fit the model. A history that fails is saved in a file.
func (r *recorder) check(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kit.Must(ctx.Err())
	err := r.wrong
	if err == nil {
		err = r.history.Check()
	}
	if failure, ok := errors.AsType[*kit.Failure](err); ok && r.subject.Keep != "" {
		if raw, err := json.Marshal(r.history); err == nil && os.WriteFile(r.subject.Keep, raw, 0o600) == nil {
			failure.Recorded = r.subject.Keep
		}
	}
	kit.Must(err)
}

// Recheck reads a history that a kit recorded and compares it with the model again.
func Recheck(raw []byte) error {
	var h History
	if err := json.Unmarshal(raw, &h); err != nil {
		return fmt.Errorf("this is not a recorded history: %w", err)
	}
	return h.Check()
}

// calibrate measures how far the store's clock is behind the kit's, for a store that reports when lifetimes end.
func (s *Subject) calibrate(ctx context.Context, trial *kit.Trial) {
	r, ids := s.record(trial), newIDs(0)
	const lifetime = time.Hour
	put := r.do(ctx, 0, 0, Operation{Method: methodPut, ID: ids[0], Record: sessionstore.Record{ID: ids[0], Subject: "clock"}, TTL: lifetime})
	if got := r.do(ctx, 0, 0, Operation{Method: methodGet, ID: ids[0]}); got.Answer == answerOK && !got.Expires.IsZero() {
		at := got.Expires.Sub(r.history.Began)
		s.behind = &Window{put.Call + lifetime - at, put.Return + lifetime - at}
	}
	kit.Must(r.wrong)
}

// works waits until the store works again after a fault.
func (r *recorder) works(ctx context.Context, id string) {
	var err error
	for until := time.Now().Add(max(15*time.Second, r.limit)); time.Now().Before(until); {
		if slices.IndexFunc(r.subject.clients(), func(store sessionstore.Store) bool {
			short, cancel := context.WithTimeout(ctx, r.limit)
			defer cancel()
			_, err = store.Get(short, id)
			return err != nil && !errors.Is(err, plugins.ErrNotFound)
		}) < 0 {
			return
		}
		kit.Must(kit.Pause(ctx, 20*time.Millisecond))
	}
	kit.Reject(kit.ErrorText(err), "an answer, because the backend has been back for a while", sentenceBack)
}
