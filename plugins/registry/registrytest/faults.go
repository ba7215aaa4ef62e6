package registrytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// question is a call whose correct result is known and is not an error.
type question struct {
	call string
	ask  func(context.Context) error // a *kit.Failure for a result that is not correct, and the error of one that failed
}

// questions returns searches, resolves and downloads, each about a different bundle as long as there are enough,
// because earlier results may be cached.
func (s Subject) questions(ctx context.Context, r *rand.Rand, c Catalogue) (all [3][]question) {
	for i, b := range c.pick(r, len(c.Bundles)) {
		all[0] = append(all[0], question{fmt.Sprintf("Search of %q", b.Name), s.search(c, registry.Query{Text: b.Name, Limit: registry.MaxLimit})})
		if c.Whole && i%2 == 0 {
			limit := max(2, len(c.Bundles)/2-i/2)
			all[0] = append(all[0], question{fmt.Sprintf("Search of everything with the limit %d, page by page", limit), s.search(c, registry.Query{Limit: limit})})
		}
		for _, ref := range c.good(b) {
			if want := c.resolve(ref); want.notFound || b.more && b.Versions[0].Files == nil {
				continue
			}
			all[1] = append(all[1], question{fmt.Sprintf("Resolve(%q, version %q, %s/%s)", ref.Name, ref.Version, ref.OS, ref.Arch), func(ctx context.Context) error {
				pkg, err := s.Registry.Resolve(ctx, ref)
				if err != nil {
					return err
				}
				return c.resolves(ref, pkg, nil)
			}})
			break
		}
	}
	for _, p := range s.parcels(ctx, c, 12) {
		all[2] = append(all[2], s.download(p))
	}
	return all
}

// demand says which results a fault allows, other than the correct one.
type demand int

const (
	unavailable demand = iota // UNAVAILABLE, or an exceeded deadline
	failed                    // any error that says nothing about the bundle or the request
	page                      // the same, and files with different bytes
	refused                   // any error, because the backend may have meant it
	spoiled                   // any error, and files with different bytes
)

// impatience is the deadline of calls to a failing backend. An implementation may retry until then.
const impatience = 2 * time.Second

// callDuring makes a call while the backend has a fault. It reports whether the result was correct all the same.
func (s Subject) callDuring(ctx context.Context, t *kit.Trial, what string, q question, allowed demand) (right bool) {
	limited, cancel := context.WithTimeout(ctx, impatience)
	defer cancel()
	began := time.Now()
	err := q.ask(limited)
	took := time.Since(began)
	failed := func(answered, demanded, sentence string) {
		kit.Reject(answered, demanded, sentence, what, q.call)
	}
	if why, ok := errors.AsType[*kit.Failure](err); ok {
		if (allowed == page || allowed == spoiled) && why.Sentence == lastByte || allowed == refused && (why.Sentence == ownName || why.Sentence == listsAll) { // it says that nothing matches
			return false
		}
		kit.Must(kit.After(kit.Citing(why, notPackage, lastByte), what))
	}
	if took > impatience+t.Limit(late) {
		failed(fmt.Sprintf("after %s", took), fmt.Sprintf("a response soon after its deadline of %s", impatience), concurrently)
	}
	late := errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil
	switch {
	case err == nil || allowed >= refused || ctx.Err() != nil:
	case errors.Is(err, plugins.ErrNotFound):
		failed(message(err), "UNAVAILABLE", reallyAsked)
	case errors.Is(err, plugins.ErrInvalid), errors.Is(err, plugins.ErrUnauthenticated), errors.Is(err, plugins.ErrUnimplemented),
		allowed == unavailable && !late && !errors.Is(err, plugins.ErrUnavailable):
		failed(message(err), "UNAVAILABLE", notAsked)
	}
	return err == nil
}

// late is how long after its deadline a call may return.
const late = 2 * time.Second

// checkRecovery repeats calls until their results are correct again.
func (s Subject) checkRecovery(ctx context.Context, t *kit.Trial, what string, qs ...question) {
	for until := time.Now().Add(t.Start); len(qs) > 0; {
		limited, cancel := context.WithTimeout(ctx, timeout/3)
		err := qs[0].ask(limited)
		cancel()
		if err == nil {
			qs = qs[1:]
			continue
		}
		_, wrong := errors.AsType[*kit.Failure](err)
		if !wrong && time.Now().After(until) {
			err, wrong = failure(qs[0].call, message(err), "the same result as before", reallyAsked), true
		}
		if wrong {
			kit.Must(kit.After(err, "after "+what+", with the backend as before:"))
		}
		kit.Must(kit.Pause(ctx, 50*time.Millisecond))
	}
}

// instead returns an HTTP response.
func instead(status int, kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), kind, len(body), body)
}

// faultyResponse is a response from a faulty backend.
type faultyResponse struct {
	what, text string
	allowed    demand
}

func faultyResponses() (all []faultyResponse) {
	for _, status := range []int{400, 401, 403, 404, 408, 410, 429, 500, 502, 503, 504} {
		allowed := unavailable
		if slices.Contains([]int{400, 404, 410}, status) {
			allowed = refused
		}
		all = append(all, faultyResponse{fmt.Sprintf("the backend responds with %d and an HTML page", status), instead(status, "text/html", "<html><body>Error</body></html>"), allowed},
			faultyResponse{fmt.Sprintf("the backend responds with %d and a JSON object", status), instead(status, "application/json", `{"error": "error"}`), allowed})
	}
	for _, status := range []int{http.StatusNoContent, http.StatusFound, http.StatusNotModified, 520} {
		all = append(all, faultyResponse{fmt.Sprintf("the backend responds with %d", status), instead(status, "text/html", ""), unavailable})
	}
	for _, body := range []string{"<html><body>Log in</body></html>", "", `{"name": "`} {
		all = append(all, faultyResponse{fmt.Sprintf("the backend responds with 200 and %q", body), instead(http.StatusOK, "application/json", body), page})
	}
	return all
}

func faults(ctx context.Context, t *kit.Trial, s Subject) {
	switch {
	case s.Backend == nil && s.Fixed:
		kit.Must(kit.DoesNotApply("the registry has no backend (--backend none)"))
	case s.Backend == nil:
		kit.Must(kit.CannotJudge("the kit was not given a way to make the backend unreachable: give --backend HOST:PORT and put ${backend} in the settings, or --backend none if there is none"))
	}
	r := t.Rand(0)
	all := s.questions(ctx, r, s.catalogue(ctx, r, 40))
	next := [3]int{}
	another := func(kind int) question {
		next[kind]++
		return all[kind][next[kind]%len(all[kind])]
	}
	for range t.Count(10)/5 + 1 {
		for kind := range all {
			if len(all[kind]) > 0 {
				s.callWhileUnreachable(ctx, t, another(kind), kind == 2)
			}
		}
	}
	front, ok := s.Backend.(*Front)
	if !ok {
		t.Cover("a backend that is unreachable")
		return
	}
	made := 0
	for kind := range all {
		for range max(1, t.Count(2)) {
			if len(all[kind]) > 0 {
				made += s.breakResponses(ctx, t, front, func() question { return another(kind) })
			}
		}
	}
	t.Cover("a backend that is unreachable, and %d requests to it that got an error, a partial response or different bytes", made)
}

// callWhileUnreachable makes a call while the backend is unreachable. A file may be kept forever, other responses for a
// minute.
func (s Subject) callWhileUnreachable(ctx context.Context, t *kit.Trial, q question, file bool) {
	const what = "the backend is unreachable"
	if err := s.Backend.Stop(ctx); err != nil {
		kit.Must(fmt.Errorf("make the backend unreachable: %w", err))
	}
	err := kit.Catch(func() {
		if right := s.callDuring(ctx, t, what, q, unavailable); !right || file {
			return
		}
		kit.Must(kit.Pause(ctx, s.age()+time.Second))
		if right := s.callDuring(ctx, t, what, q, unavailable); right {
			kit.Reject("the earlier result", "UNAVAILABLE", minuteOld, what+" for "+s.age().String(), q.call)
		}
	})
	kit.Must(errors.Join(err, s.Backend.Start(context.WithoutCancel(ctx))))
	s.checkRecovery(ctx, t, what, q)
}

// breakResponses makes a call while the backend responds to its requests in every wrong way, one after another. It
// returns the number of wrong responses.
func (s Subject) breakResponses(ctx context.Context, t *kit.Trial, front *Front, another func() question) (made int) {
	defer front.set(none)
	front.set(none)
	q := another()
	s.checkRecovery(ctx, t, "nothing", q)
	right := front.set(none)
	try := func(what string, f fault, allowed demand) {
		for range 2 {
			front.set(f)
			s.callDuring(ctx, t, fmt.Sprintf("%s, from request %d on", what, f.skip+1), q, allowed)
			affected := len(front.set(none)) - f.skip
			s.checkRecovery(ctx, t, what, q)
			if affected > 0 {
				made += affected
				return
			}
			q = another() // the result was cached
		}
	}
	for skip, a := range right {
		for _, wrong := range faultyResponses() {
			try(wrong.what, fault{skip: skip, instead: wrong.text, cut: -1}, wrong.allowed)
		}
		cuts := []int{0, 1, a.head - 1, a.head, a.head + 1, (a.head + a.all) / 2, a.all - 1}
		slices.Sort(cuts)
		for _, cut := range slices.Compact(cuts) {
			if cut >= 0 && cut < a.all {
				try(fmt.Sprintf("the backend's response breaks off after %d of %d bytes", cut, a.all), fault{skip: skip, cut: cut}, failed)
			}
		}
	}
	try("files arrive with different bytes", fault{cut: -1, spoil: true}, spoiled)
	return made
}

// givenUp abandons calls, before they start and while the backend is not responding.
func givenUp(ctx context.Context, t *kit.Trial, s Subject) {
	r := t.Rand(0)
	c := s.catalogue(ctx, r, 6)
	all := s.questions(ctx, r, c)
	for kind := range all {
		for _, q := range all[kind][:min(len(all[kind]), t.Count(5))] {
			s.callAfterDeadline(ctx, t, q)
		}
	}
	switch {
	case s.Backend == nil && s.Fixed:
		t.Cover("calls whose deadline has passed")
		return
	case s.Backend == nil:
		kit.Must(kit.CannotJudge("the kit was not given a way to keep the backend from responding: give --backend HOST:PORT and put ${backend} in the settings, or --backend none if there is none"))
	}
	if err := s.Backend.Stall(ctx); errors.Is(err, errors.ErrUnsupported) {
		t.Cover("calls whose deadline has passed; a folder always responds")
		return
	}
	qs := slices.Concat(all[2], all[1], all[0])
	s.callWhileStalled(ctx, t, qs)
	s.callWhilePausing(ctx, t, qs)
	if meter, ok := s.Backend.(kit.Meter); ok {
		s.abandonDownload(ctx, t, meter, c)
	}
	t.Cover("calls whose deadline has passed, and %d abandoned calls and downloads", t.Count(100))
}

// callAfterDeadline makes a call whose deadline has already passed.
func (s Subject) callAfterDeadline(ctx context.Context, t *kit.Trial, q question) {
	past, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	began := time.Now()
	err := q.ask(past)
	_, wrong := errors.AsType[*kit.Failure](err)
	if took := time.Since(began); took > t.Limit(late) || err == nil || wrong || errors.Is(err, plugins.ErrNotFound) || errors.Is(err, plugins.ErrInvalid) {
		kit.Must(failure(q.call+" with a deadline that has passed", fmt.Sprintf("%s, after %s", message(err), took.Round(time.Millisecond)), "DEADLINE_EXCEEDED at once", concurrently))
	}
}

// callWhileStalled abandons many calls while the backend is not responding. Once it responds again, everything must
// work as before.
func (s Subject) callWhileStalled(ctx context.Context, t *kit.Trial, qs []question) {
	n := t.Count(100)
	err := kit.Catch(func() {
		kit.AtOnce(ctx, n, n, func(ctx context.Context, i int) {
			s.callDuring(ctx, t, "the backend does not respond", qs[i%len(qs)], failed)
		})
	})
	kit.Must(errors.Join(err, s.Backend.Start(context.WithoutCancel(ctx))))
	err = kit.Catch(func() { s.checkRecovery(ctx, t, fmt.Sprintf("%d abandoned calls", n), qs[:min(len(qs), 20)]...) })
	kit.Must(kit.Citing(err, stops))
}

// callWhilePausing makes calls with short and long deadlines while the backend pauses. Only the short ones may fail.
func (s Subject) callWhilePausing(ctx context.Context, t *kit.Trial, qs []question) {
	const short = 100 * time.Millisecond
	for round := range t.Count(10) {
		kit.Must(s.Backend.Stall(ctx))
		var hasty, running sync.WaitGroup
		errs := make([]error, 12)
		for i := range errs {
			q, group, limit := qs[(round*5+i)%len(qs)], &running, timeout
			if i%2 == 0 {
				group, limit = &hasty, short
			}
			group.Go(func() {
				limited, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				err := q.ask(limited)
				if _, wrong := errors.AsType[*kit.Failure](err); wrong {
					errs[i] = err
				} else if err != nil && limit != short {
					errs[i] = failure(q.call, message(err), "the result, because the backend was only slow and this call had enough time", concurrently)
				}
			})
		}
		hasty.Wait()
		err := s.Backend.Start(context.WithoutCancel(ctx))
		running.Wait()
		for _, wrong := range append(errs, err) {
			kit.Must(kit.After(wrong, "the backend pauses", fmt.Sprintf("6 calls with a deadline of %s, and 6 with one of %s, at once", short, timeout)))
		}
	}
}

// abandonDownload abandons a download in progress. The plugin must then stop reading it from the backend.
func (s Subject) abandonDownload(ctx context.Context, t *kit.Trial, meter kit.Meter, c Catalogue) {
	parcels := s.parcels(ctx, c, 12)
	i := slices.IndexFunc(parcels, func(p parcel) bool { return p.size > 64<<10 }) // a smaller one would arrive too quickly
	if i < 0 {
		return
	}
	kit.Must(meter.Slow(ctx))
	defer func() { _ = meter.Start(context.WithoutCancel(ctx)) }()
	before := meter.Sent()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, _, err := s.fetch(limited, parcels[i].pkg)
		over <- err
	}()
	for begun := time.Now(); meter.Sent()-before < 24<<10 && time.Since(begun) < 5*time.Second; {
		kit.Must(kit.Pause(ctx, 10*time.Millisecond))
	}
	cancel()
	call := "Fetch of " + parcels[i].pkg.Name + " from a slow backend, abandoned after some bytes"
	select {
	case err := <-over:
		if err == nil {
			return // the file was cached
		}
	case <-time.After(t.Limit(late)):
		kit.Must(failure(call, strings.TrimSpace("no result for "+t.Limit(late).String()), "an end", stops))
	}
	kit.Must(kit.Pause(ctx, time.Second))
	given := meter.Sent()
	kit.Must(kit.Pause(ctx, time.Second))
	if more := meter.Sent() - given; more > kit.SlowPace/2 {
		kit.Must(failure(call, fmt.Sprintf("it read another %d bytes in a second, from a backend that sends %d", more, kit.SlowPace), "no further reads", stops))
	}
}

// Front is a kit.Proxy that can also respond to HTTP requests instead of the backend, and corrupt the backend's
// responses.
type Front struct {
	*kit.Proxy

	mu      sync.Mutex
	fault   fault
	answers []size // since the fault was set
}

// fault is what goes wrong with the next requests, after the first skip.
type fault struct {
	skip    int
	instead string // an HTTP response in place of the backend's; "" for none
	cut     int    // bytes after which a response breaks off; negative means never
	spoil   bool   // files get different bytes
}

var none = fault{cut: -1}

// size is the size in bytes of a backend's response.
type size struct{ head, all int }

// NewFront forwards a free port of 127.0.0.1 to target.
func NewFront(target string) (*Front, error) {
	f := &Front{fault: none}
	var err error
	f.Proxy, err = kit.NewFilter(target, f)
	return f, err
}

// set sets the next fault and returns the backend's responses since the last call.
func (f *Front) set(next fault) []size {
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := f.answers
	f.fault, f.answers = next, nil
	return answered
}

// Asked implements kit.Filter. It records a request.
func (f *Front) Asked(piece []byte) (answer []byte, instead bool) {
	if !bytes.HasPrefix(piece, []byte("GET ")) && !bytes.HasPrefix(piece, []byte("POST ")) && !bytes.HasPrefix(piece, []byte("HEAD ")) {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, size{})
	return []byte(f.fault.instead), f.fault.instead != "" && len(f.answers) > f.fault.skip
}

// Answered implements kit.Filter. It records a piece of a response and corrupts it if the fault says so.
func (f *Front) Answered(piece []byte) (rest []byte, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) == 0 {
		return piece, true
	}
	a := &f.answers[len(f.answers)-1]
	before := a.all
	a.all += len(piece)
	body := 0
	if end := bytes.Index(piece, []byte("\r\n\r\n")); before == 0 && end >= 0 {
		a.head, body = end+4, end+4
	}
	if len(f.answers) <= f.fault.skip {
		return piece, true
	}
	if f.fault.cut >= 0 && a.all >= f.fault.cut {
		return piece[:max(0, f.fault.cut-before)], false
	}
	if f.fault.spoil && (before > 0 || body > 0 && !bytes.ContainsAny(piece[body:min(len(piece), body+1)], "{[<")) {
		for i := body; i < len(piece); i += 7 {
			piece[i] ^= 0x55
		}
	}
	return piece, true
}
