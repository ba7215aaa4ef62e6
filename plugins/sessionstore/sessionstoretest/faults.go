package sessionstoretest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// breakable ends the property if the backend cannot be broken.
func (s Subject) breakable() {
	switch {
	case s.Backend != nil:
	case !s.Durable:
		kit.Must(kit.DoesNotApply("the store is not durable: its sessions are in its own process"))
	case s.NoBackend != "":
		kit.Must(kit.DoesNotApply("%s", s.NoBackend))
	default:
		kit.Must(kit.CannotJudge("the kit cannot break the connections to the backend: give its address with --backend and write ${backend} in the settings, or --backend none if the store keeps its sessions in files of its own"))
	}
}

// attempt is an operation to try during a fault, and whether its session exists before.
type attempt struct {
	name   string
	exists bool
	ops    func(random func(int) int, id string) []Operation
}

func (s Subject) attempts() []attempt {
	with := func(op Operation) func(func(int) int, string) []Operation {
		return func(p func(int) int, id string) []Operation {
			op.ID = id
			if op.Method == methodPut || op.Method == methodReplace {
				op.Record = record(p, id, 2)
				op.Record.Owner = "server-b"
			}
			return []Operation{op}
		}
	}
	all := []attempt{
		{"Put of a new session", false, with(Operation{Method: methodPut, TTL: 2 * time.Hour})},
		{"Put over a session", true, with(Operation{Method: methodPut, TTL: 2 * time.Hour})},
		{"Get", true, with(Operation{Method: methodGet})},
		{"Touch", true, func(_ func(int) int, id string) []Operation {
			at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			return []Operation{
				{Method: methodTouch, ID: id + "-other", Accessed: at, TTL: 3 * time.Hour}, {Method: methodTouch, ID: id, Accessed: at, TTL: 3 * time.Hour},
				{Method: methodTouch, ID: id + "-third", Accessed: at, TTL: 3 * time.Hour},
			}
		}},
		{"Delete", true, with(Operation{Method: methodDelete})},
	}
	if _, replaces := s.Store.(sessionstore.Replacer); replaces {
		all = append(all, attempt{"Replace", true, with(Operation{Method: methodReplace, TTL: 2 * time.Hour, Owner: "server-a"})},
			attempt{"Replace without a lifetime", true, with(Operation{Method: methodReplace, Owner: "server-a"})})
	}
	return all
}

// prepare puts the sessions of an attempt and reads one, so that the store opens its connections.
func (r *recorder) prepare(ctx context.Context, a attempt, p pick) {
	r.attempt = fitted(newIDs(p(families))[0], 120)
	for _, name := range []string{r.attempt, r.attempt + "-other", r.attempt + "-third"} {
		if a.exists {
			rec := record(p, name, 1)
			rec.Owner = "server-a"
			r.do(ctx, 0, 0, Operation{Method: methodPut, ID: name, Record: rec, TTL: time.Hour})
		}
		r.do(ctx, 0, 0, Operation{Method: methodGet, ID: name})
	}
}

// look reads the sessions of an attempt after the backend is back.
func (r *recorder) look(ctx context.Context) {
	id := r.attempt
	r.works(ctx, id)
	r.pending = false
	for i, name := range []string{id, id + "-other", id + "-third", id} {
		r.do(ctx, i, 0, Operation{Method: methodGet, ID: name})
	}
	r.check(ctx)
}

// lookAgain reads the sessions of attempts once no call can take effect any more.
func lookAgain(ctx context.Context, recorders []*recorder) {
	for _, r := range recorders {
		for _, op := range r.history.Calls {
			kit.Must(kit.Pause(ctx, op.Return-r.now()))
		}
	}
	kit.AtOnce(ctx, len(recorders), len(recorders), func(ctx context.Context, i int) {
		recorders[i].look(ctx)
	})
}

// cuts breaks the connections before and after each write of each operation.
func cuts(ctx context.Context, trial *kit.Trial, s Subject) {
	s.breakable()
	cutter, ok := s.Backend.(kit.Cutter)
	if !ok {
		kit.Must(kit.CannotJudge("the kit cannot interrupt the backend at a chosen write"))
	}
	var recorders []*recorder
	for i, a := range s.attempts() {
		r := s.record(trial)
		p := pick(trial.Rand(i).IntN)
		r.prepare(ctx, a, p)
		before := cutter.Writes()
		r.do(ctx, 0, 0, a.ops(p, r.attempt)...)
		writes := cutter.Writes() - before
		r.look(ctx)
		for k := int64(1); k <= min(writes, int64(trial.Count(20))); k++ {
			for _, before := range []bool{true, false} {
				r := s.record(trial)
				r.prepare(ctx, a, p)
				if r.wrong != nil {
					r.check(ctx)
				}
				cutter.Cut(k, before)
				r.happens(fmt.Sprintf("the connections will break %s write %d", map[bool]string{true: "before", false: "after"}[before], k))
				r.pending = true
				r.do(ctx, 0, time.Second, a.ops(p, r.attempt)...)
				kit.Must(s.Backend.Start(ctx))
				r.happens(backAgain)
				r.look(ctx)
				recorders = append(recorders, r)
			}
		}
	}
	trial.Cover("%d operations, interrupted before and after each of their writes", len(recorders))
	settled(ctx, trial, recorders)
}

// unavailable makes every call while the backend refuses connections, and again while it does not respond.
func unavailable(ctx context.Context, trial *kit.Trial, s Subject) {
	s.breakable()
	trial.Cover("%d operations, while the backend refuses connections and while it does not respond", len(s.attempts()))
	var watched []*recorder
	for _, fault := range []struct { // the last one abandons calls, whose late effects need a backend that works
		name string
		fail func(context.Context) error
	}{{"is stopped", s.Backend.Stop}, {"does not answer", s.Backend.Stall}} {
		var recorders []*recorder
		for i, a := range s.attempts() {
			recorders = append(recorders, s.record(trial))
			recorders[i].prepare(ctx, a, trial.Rand(i).IntN)
		}
		if err := fault.fail(ctx); err != nil {
			kit.Must(fmt.Errorf("the backend %s: %w", fault.name, err))
		}
		last := make([]Operation, len(recorders))
		each := func(ctx context.Context, i int) {
			r := recorders[i]
			r.pending = true
			r.happens("the backend " + fault.name)
			for try := range 2 {
				last[i] = r.do(ctx, 0, time.Second, s.attempts()[i].ops(trial.Rand(100+10*try+i).IntN, r.attempt)...)
				if r.wrong == nil && last[i].Answer != answerUnseen {
					r.reject(last[i], r.history.answer(last[i]), "UNAVAILABLE, because the backend "+fault.name, sentenceUnavailable)
				}
			}
			kit.Must(r.wrong)
		}
		err := kit.Catch(func() { kit.AtOnce(ctx, len(recorders), len(recorders), each) })
		ends := time.Duration(0)
		for i, r := range recorders {
			ends = max(ends, last[i].Return-r.now())
		}
		wait := kit.Pause(ctx, ends)
		_ = s.Backend.Stop(ctx) // abandoned calls must not reach the backend once it is back
		kit.Must(cmp.Or(err, wait, s.Backend.Start(context.WithoutCancel(ctx))))
		for _, r := range recorders {
			r.happens(backAgain)
		}
		lookAgain(ctx, recorders)
		watched = append(watched, recorders...)
	}
	settled(ctx, trial, watched)
}

const backAgain = "the backend works again"

// settled reads the sessions of attempts again after a while. Until then, a store must not repeat what it gave up.
func settled(ctx context.Context, trial *kit.Trial, recorders []*recorder) {
	for range 2 {
		lookAgain(ctx, recorders)
		kit.Must(kit.Pause(ctx, time.Duration(trial.Count(10))*time.Second/2))
	}
	lookAgain(ctx, recorders)
}

// disturbed is concurrent while the backend stops and starts.
func disturbed(ctx context.Context, trial *kit.Trial, s Subject) {
	s.breakable()
	n := trial.Count(100)
	trial.Cover("%d histories of 4 clients with 4 calls each, during a fault of the backend", n)
	again := make([]func(context.Context), n)
	for i := range n {
		random := trial.Rand(i)
		kind, at, lasts := random.IntN(6), time.Duration(random.IntN(8))*time.Millisecond, time.Duration(20+random.IntN(60))*time.Millisecond
		again[i] = s.crowd(ctx, trial, random, 4, func(happens func(string)) error {
			if err := kit.Pause(ctx, at); err != nil {
				return err
			}
			cutter, cuts := s.Backend.(kit.Cutter)
			switch {
			case kind == 0:
				happens("the backend is stopped")
				_ = s.Backend.Stop(ctx)
			case kind == 1 || !cuts:
				happens("the backend does not answer")
				_ = s.Backend.Stall(ctx)
			default:
				happens("the connections will break at a write")
				cutter.Cut(1+int64(random.IntN(6)), kind == 5)
			}
			err := kit.Pause(ctx, lasts)
			_ = s.Backend.Stop(context.WithoutCancel(ctx))
			_ = s.Backend.Start(context.WithoutCancel(ctx))
			happens(backAgain)
			return err
		})
	}
	later(ctx, again)
}

// killed kills the process between and during calls. Each session has one client. Its call may be made twice, because
// the server repeats a call whose process has ended.
func killed(ctx context.Context, trial *kit.Trial, s Subject) {
	switch {
	case !s.Durable:
		kit.Must(kit.DoesNotApply(`the store does not have the capability "durable"`))
	case s.Restart == nil:
		kit.Must(kit.CannotJudge("the kit was not given a way to kill the process"))
	}
	n := trial.Count(10)
	trial.Cover("%d times kill -9, while 8 clients write and lifetimes run", n)
	ending := s.record(trial)
	var soon []string
	for round := range n {
		r := s.record(trial)
		id := newIDs(0)[0]
		soon = append(soon, id)
		rec := short(trial.Rand(-1-round), id, round)
		ending.do(ctx, 0, 0, Operation{Method: methodPut, ID: id, Record: rec, TTL: lifetimeOver(round)})
		if round%2 == 1 {
			ending.do(ctx, 0, 0, Operation{Method: methodTouch, ID: id, Accessed: rec.LastAccessedAt, TTL: lifetimeOver(round + 1)})
		}
		clients := 8
		ids := make([]string, clients)
		kit.AtOnce(ctx, clients+1, clients+1, func(ctx context.Context, client int) {
			random := trial.Rand(round*100 + client)
			if client == clients {
				kit.Must(kit.Pause(ctx, time.Duration(random.IntN(60))*time.Millisecond))
				r.dying.Store(true)
				r.happens("kill -9")
				ending.happens("kill -9")
				kit.Must(s.Restart(ctx))
				return
			}
			ids[client] = newIDs(0)[client%3]
			for i := 0; i < 40 && !r.dying.Load(); i++ {
				ops := operation(random.IntN, ids[client:client+1], servers, 0, r.history.Replaces, false)
				for j := range ops {
					if ops[j].Record.ID != "" {
						ops[j].Record = short(random, ops[j].ID, i)
					}
				}
				r.do(ctx, client*len(s.clients()), 0, ops...) // the process that is killed is the first
			}
		})
		r.works(ctx, ids[0])
		r.dying.Store(false)
		for _, id := range ids {
			r.do(ctx, 0, 0, Operation{Method: methodGet, ID: id})
		}
		kit.Must(kit.Citing(kit.Catch(func() { r.check(ctx) }), sentenceDurable, sentenceSeen, sentenceOver)) // a write was lost
	}
	kit.Must(kit.Pause(ctx, lifetimeOver(0)+slack))
	for _, id := range soon {
		ending.do(ctx, 0, 0, Operation{Method: methodGet, ID: id})
	}
	ending.check(ctx)
}

// lifetimeOver returns a lifetime that ends a few kills later.
func lifetimeOver(round int) time.Duration { return time.Duration(5-round%3) * time.Second }
