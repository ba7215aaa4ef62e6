package sessionstoretest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// The names of the properties.
const (
	Sequential  = "every answer is the one that the model expects, call after call"
	Refusing    = "a call that the contract does not allow is refused and does nothing"
	Concurrent  = "the answers to concurrent clients fit some order of their calls"
	Lifetimes   = "sessions live exactly as long as they should"
	Many        = "thousands of sessions do not influence each other"
	Cuts        = "answers stay correct when connections to the backend break at any write"
	Unavailable = "an unavailable backend is reported, and abandoned calls do not take effect later"
	Disturbed   = "answers fit some order of the calls even while the backend comes and goes"
	Killed      = "acknowledged writes survive kill -9"
)

// Properties returns the properties that a session store must have.
func Properties() []kit.Property[Subject] {
	contract := kit.Contract("sessionstore")
	property := func(name string, try func(context.Context, *kit.Trial, Subject)) kit.Property[Subject] {
		return kit.Property[Subject]{Name: name, Sentences: contract, Try: func(ctx context.Context, trial *kit.Trial, s Subject) {
			s.calibrate(ctx, trial)
			try(ctx, trial, s)
		}}
	}
	return []kit.Property[Subject]{
		property(Sequential, sequential), property(Refusing, refusing), property(Concurrent, concurrent), property(Lifetimes, lifetimes), property(Many, many),
		property(Cuts, cuts), property(Unavailable, unavailable), property(Disturbed, disturbed), property(Killed, killed),
	}
}

// sequential makes one call after another, on several sessions that are easily confused with each other.
func sequential(ctx context.Context, trial *kit.Trial, s Subject) {
	const lanes = 8 // concurrent histories, each on its own sessions
	n := max(1, trial.Count(400)/lanes)
	trial.Cover("%d histories of up to 30 calls about up to 5 sessions, texts up to %d bytes, states up to %d bytes", n*lanes, maxText, maxState)
	trial.Explore(ctx, lanes, n, func(ctx context.Context, draw *rapid.T) {
		p := pick(func(n int) int { return kit.Pick(draw, n) })
		r, ids, owners := s.record(trial), newIDs(p(families)), someOwners(p)
		number := 0
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []Operation {
			number++
			return operation(func(n int) int { return kit.Pick(t, n) }, ids, owners, number, r.history.Replaces, false)
		}), 1, 30).Draw(draw, "calls")
		written := map[string]sessionstore.Record{}
		for i, ops := range calls {
			if before, ok := written[ops[0].ID]; ok && ops[0].Method == methodReplace && p(4) == 3 { // a replacement that changes nothing
				ops[0].Record, ops[0].Owner = before, before.Owner
			}
			op := r.do(ctx, i, 0, ops...)
			if r.wrong != nil {
				break
			}
			if op.Method == methodPut || op.Replaced {
				written[op.ID] = op.Record
			}
		}
		for i := range 2 * len(ids) {
			if r.wrong == nil {
				r.do(ctx, i/len(ids), 0, Operation{Method: methodGet, ID: ids[i%len(ids)]})
			}
		}
		r.check(ctx)
	})
	s.strangers(ctx, trial)
}

// strangers replaces sessions of each owner, with an expected owner that a store might confuse with the real one.
func (s Subject) strangers(ctx context.Context, trial *kit.Trial) {
	if _, replaces := s.Store.(sessionstore.Replacer); !replaces {
		return
	}
	var groups [][]string
	for family := range families + 1 {
		groups = append(groups, alikeOwners(family))
	}
	for _, hash := range hashes() {
		groups = append(groups, collide(hash))
	}
	random := trial.Rand(-1)
	random.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	groups = groups[:min(len(groups), trial.Count(len(groups)))]
	trial.Cover("%d groups of owners that are easily confused", len(groups))
	kit.AtOnce(ctx, len(groups), 8, func(ctx context.Context, i int) {
		r, id, number := s.record(trial), newIDs(0)[0], 0
		for _, owner := range groups[i] {
			next := func(method, expected string) {
				rec := short(trial.Rand(number), id, number)
				rec.Owner = owner
				r.do(ctx, number, 0, Operation{Method: method, ID: id, Record: rec, TTL: time.Hour, Owner: expected})
				number++
			}
			next(methodPut, "")
			for _, expected := range groups[i] {
				next(methodReplace, expected)
			}
		}
		r.check(ctx)
	})
}

// refusing makes calls that must be refused, in between valid ones.
func refusing(ctx context.Context, trial *kit.Trial, s Subject) {
	n := trial.Count(40)
	trial.Cover("%d histories of up to 12 calls, half of them wrong", n)
	trial.Explore(ctx, 1, n, func(ctx context.Context, draw *rapid.T) {
		p := pick(func(n int) int { return kit.Pick(draw, n) })
		r, ids, owners := s.record(trial), newIDs(0), someOwners(p)
		r.do(ctx, 0, 0, Operation{Method: methodPut, ID: ids[0], Record: record(p, ids[0], 1000), TTL: time.Hour})
		for number := range 1 + p(6) {
			wrong := one[time.Duration](p, 0, -time.Second, -time.Nanosecond, -30*24*time.Hour)
			bad := Operation{Method: methodPut, ID: ids[0], Record: record(p, ids[0], number), TTL: wrong}
			sentence := sentencePutInvalid
			switch p(5) {
			case 1:
				bad.TTL, bad.Record.ID, bad.ID = time.Hour, "", ""
			case 2:
				bad.Method, bad.Accessed, sentence = methodTouch, moment(p), sentenceTouchWrong
			case 3, 4:
				if r.history.Replaces {
					bad.Method, bad.TTL, bad.Owner, sentence = methodReplace, min(wrong, -1), one(p, owners...), sentenceReplWrong
				}
			}
			ops := []Operation{bad}
			if bad.Method == methodTouch {
				for range p(3) {
					ops = append(ops, Operation{Method: methodTouch, ID: ids[0], Accessed: moment(p), TTL: time.Minute})
				}
				for range p(3) {
					ops = append([]Operation{{Method: methodTouch, ID: ids[0], Accessed: moment(p), TTL: time.Minute}}, ops...)
				}
			}
			r.refused(ctx, number, sentence, ops...)
			r.do(ctx, number, 0, Operation{Method: methodGet, ID: ids[0]})
			if p(2) == 1 {
				r.do(ctx, number, 0, operation(p, ids[:2], owners, 100+number, r.history.Replaces, false)...)
			}
		}
		short, cancel := context.WithTimeout(ctx, r.limit)
		defer cancel()
		if err := s.Store.Touch(short, nil); err != nil && ctx.Err() == nil {
			kit.Reject(kit.ErrorText(err), "OK: an empty batch is not an error", sentenceSucceeds, "Touch()")
		}
		r.check(ctx)
	})
}

// concurrent lets clients call at the same time. Some of them abandon their calls.
func concurrent(ctx context.Context, trial *kit.Trial, s Subject) {
	const lanes = 4
	n := max(1, trial.Count(240)/lanes)
	trial.Cover("%d histories of 4 clients of %d processes, with 6 calls each about 1 to 3 sessions", n*lanes, len(s.clients()))
	again := make([]func(context.Context), lanes*n)
	kit.AtOnce(ctx, lanes, lanes, func(ctx context.Context, lane int) {
		for i := lane * n; i < (lane+1)*n; i++ {
			again[i] = s.crowd(ctx, trial, trial.Rand(i), 6, nil)
		}
	})
	later(ctx, again)
	if s.Durable && !s.Exclusive && s.Second == nil {
		kit.Must(kit.CannotJudge("the store is durable and not exclusive, and there was no second process on its backend"))
	}
}

// later looks at the sessions of earlier histories again: no call may have taken effect since.
func later(ctx context.Context, again []func(context.Context)) {
	kit.Must(kit.Pause(ctx, 3*time.Second))
	kit.AtOnce(ctx, len(again), 8, func(ctx context.Context, i int) { again[i](ctx) })
}

// crowd records a history of four clients, optionally with a fault during it, and compares it with the model. It
// returns a function that looks at the sessions again.
func (s Subject) crowd(ctx context.Context, trial *kit.Trial, random *rand.Rand, calls int, fault func(happens func(string)) error) (again func(context.Context)) {
	r := s.record(trial)
	r.pending = fault != nil
	ids := newIDs(random.IntN(families))
	ids = ids[:1+random.IntN(3)]
	for i, id := range ids {
		if random.IntN(2) == 0 || i == 0 && fault != nil {
			r.do(ctx, 0, 0, Operation{Method: methodPut, ID: id, Record: short(random, id, 0), TTL: time.Hour})
		}
	}
	seeds := [4]uint64{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()}
	over := make(chan error, 1)
	go func() {
		if fault == nil {
			over <- nil
			return
		}
		over <- fault(r.happens)
	}()
	last := make([]time.Duration, len(seeds))
	each := func(ctx context.Context, client int) {
		own := rand.New(rand.NewPCG(seeds[client], 0)) //nolint:gosec // it must repeat
		seen := map[string]string{}                    // the owners of sessions
		for i := range calls {
			kit.Must(kit.Pause(ctx, time.Duration(own.IntN(3))*time.Millisecond))
			ops := operation(own.IntN, ids, servers, 0, r.history.Replaces, false)
			slices.SortFunc(ops, func(a, b Operation) int { return cmp.Compare(a.ID, b.ID) })
			ops = slices.CompactFunc(ops, func(a, b Operation) bool { return a.ID == b.ID }) // several possible orders of a batch would make the search too long
			own.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
			switch {
			case fault != nil && client == 0: // observes what the others do
				ops = []Operation{{Method: methodGet, ID: ids[0]}}
			case fault != nil && r.history.Replaces && own.IntN(2) == 0: // the call that a store must never repeat
				ops = []Operation{{Method: methodReplace, ID: ids[0], Owner: one(own.IntN, servers...)}}
			}
			for j := range ops {
				if ops[j].Method == methodPut || ops[j].Method == methodReplace {
					ops[j].Record = short(own, ops[j].ID, 1+client*calls+i)
				}
			}
			if known, ok := seen[ops[0].ID]; ok && own.IntN(3) > 0 {
				ops[0].Owner = known
			}
			limit := time.Duration(0)
			switch {
			case fault != nil:
				limit = 500 * time.Millisecond
			case own.IntN(16) == 0: // rarely, because each unseen outcome doubles the number of possibilities
				limit = time.Duration(1+own.IntN(4000)) * time.Microsecond
			}
			op := r.do(ctx, client, limit, ops...)
			switch {
			case op.Answer == answerUnseen:
				last[client] = max(last[client], op.Return)
				if client > 0 && fault != nil { // several unseen outcomes would make the search too long
					return
				}
			case op.Method == methodGet && op.Answer == answerOK:
				seen[op.ID] = op.Got.Owner
			case op.Method == methodPut || op.Replaced:
				seen[op.ID] = op.Record.Owner
			}
		}
	}
	err := kit.Catch(func() { kit.AtOnce(ctx, len(seeds), len(seeds), each) })
	kit.Must(cmp.Or(err, <-over))
	r.works(ctx, ids[0])
	r.pending = false
	again = func(ctx context.Context) {
		for i := range 2 * len(ids) {
			r.do(ctx, i/len(ids), 0, Operation{Method: methodGet, ID: ids[i%len(ids)]})
		}
		r.check(ctx)
	}
	again(ctx)
	kit.Must(kit.Pause(ctx, max(0, slices.Max(last)-r.now()))) // until no call can take effect any more
	again(ctx)
	return again
}

// servers are the owners that a few servers write.
var servers = []string{"", "server-a", "server-b"}

// short returns a record with plain strings and one of a few owners.
func short(random *rand.Rand, id string, number int) sessionstore.Record {
	return sessionstore.Record{
		ID: id, Subject: fmt.Sprint(number), Issuer: fmt.Sprint(number), WorkspaceID: fmt.Sprint(number), State: fmt.Sprint(number), Owner: one(random.IntN, servers...),
		CreatedAt: moment(random.IntN), LastAccessedAt: moment(random.IntN),
	}
}

// Subject is a session store to judge, with the ways to control it. A property that needs a field that is nil cannot be
// judged.
type Subject struct {
	Store sessionstore.Store

	// Durable and Exclusive say that the store has the capability "durable" or "exclusive".
	Durable, Exclusive bool

	// Second is the store of a second process on the same backend, like that of another server. It is for stores that
	// are durable and not exclusive.
	Second sessionstore.Store

	// Restart ends the process of Store with kill -9; later calls go to the next process. It is for durable stores.
	Restart func(ctx context.Context) error

	// Backend breaks the connections of Store to its backend. NoBackend says why Store has none.
	Backend   kit.Backend
	NoBackend string

	// Keep is the file in which to save a failed history; "" saves none.
	Keep string

	behind *Window
}

// clients returns the stores that a history calls.
func (s Subject) clients() []sessionstore.Store {
	if s.Second == nil {
		return []sessionstore.Store{s.Store}
	}
	return []sessionstore.Store{s.Store, s.Second}
}

// Connected returns the store at the other end of conn, with the capabilities that the plugin declares.
func Connected(ctx context.Context, conn grpc.ClientConnInterface) (Subject, error) {
	about, err := host.NewControl(conn).Info(ctx)
	if err != nil {
		return Subject{}, err
	}
	return Subject{
		Store: Declared(sessionstore.Client(conn), about.Capabilities), Durable: slices.Contains(about.Capabilities, plugins.CapabilityDurable),
		Exclusive: slices.Contains(about.Capabilities, plugins.CapabilityExclusive),
	}, nil
}

// Declared returns a client's store with only the capabilities that its plugin declares. Every client has Replace,
// whether or not the plugin does.
func Declared(store sessionstore.Store, capabilities []string) sessionstore.Store {
	if slices.Contains(capabilities, plugins.CapabilityReplace) {
		return store
	}
	return struct{ sessionstore.Store }{store}
}
