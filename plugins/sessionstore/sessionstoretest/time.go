package sessionstoretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// lifetimes watches sessions whose lifetimes end or are extended, and others whose lifetimes do not end.
func lifetimes(ctx context.Context, trial *kit.Trial, s Subject) {
	n, horizon := trial.Count(200), max(12*time.Second, time.Duration(trial.Count(120))*time.Second)
	horizon = min(horizon, 10*time.Minute)
	trial.Cover("%d sessions watched for %v, with lifetimes from 0.7 s to 30 days", n, horizon)
	if s.behind != nil {
		trial.Cover("the ends of lifetimes that the store reports, up to 30 days")
	} else {
		trial.Cover("the ends of lifetimes over %v were not checked, because the store does not report them", horizon)
	}
	var watched []*recorder
	for range n {
		watched = append(watched, s.record(trial))
	}
	kit.AtOnce(ctx, n, n, func(ctx context.Context, i int) {
		if i%4 == 3 {
			watched[i].renew(ctx, trial.Rand(i), horizon)
		} else {
			watched[i].watch(ctx, trial.Rand(i), horizon)
		}
	})
	cohort := s.record(trial)
	cohort.endTogether(ctx, trial.Rand(n))
	for _, r := range append(watched, cohort) {
		r.check(ctx)
	}
}

// watch makes calls on a session until the horizon, most of them when its lifetime is about to end.
func (r *recorder) watch(ctx context.Context, random *rand.Rand, horizon time.Duration) {
	ids := newIDs(random.IntN(families))[:1+random.IntN(2)]
	kit.Must(kit.Pause(ctx, time.Duration(random.Int64N(int64(time.Second)))))
	steady := random.IntN(3) == 0 // the session is only read after it was put
	ends := r.now() + time.Second // when the lifetime of a session is about to end
	for number := 0; r.now() < horizon && r.wrong == nil; number++ {
		var ops []Operation
		switch {
		case number == 0 && !steady && random.IntN(2) == 0:
			ops = []Operation{{Method: methodTouch, ID: ids[0], Accessed: moment(random.IntN), TTL: time.Hour}}
		case number < 2:
			id := ids[number%len(ids)]
			ops = []Operation{{Method: methodPut, ID: id, Record: short(random, id, number), TTL: one(random.IntN, lifetime(random.IntN, !steady), horizon/2, horizon-time.Second)}}
		case steady:
			ops = []Operation{{Method: methodGet, ID: ids[0]}}
		default:
			ops = operation(random.IntN, ids, servers, number, r.history.Replaces, true)
			for i := range ops {
				if ops[i].Record.ID != "" {
					ops[i].Record = short(random, ops[i].ID, number)
				}
			}
		}
		r.do(ctx, number, 0, ops...)
		for _, op := range ops {
			if op.TTL > 0 && op.TTL < horizon {
				ends = r.now() + op.TTL
			}
		}
		wait := time.Duration(random.Int64N(int64(horizon / 8)))
		if left := ends - r.now(); left > 0 && random.IntN(3) > 0 {
			wait = left + one(random.IntN, -100*time.Millisecond, -400*time.Millisecond, 200*time.Millisecond, slack+100*time.Millisecond)
		} else if random.IntN(3) == 0 {
			wait = time.Duration(random.IntN(50)) * time.Millisecond
		}
		kit.Must(kit.Pause(ctx, min(max(wait, 0), horizon+time.Second-r.now())))
		if random.IntN(2) == 0 {
			r.do(ctx, number+1, 0, Operation{Method: methodGet, ID: ids[random.IntN(len(ids))]})
		}
	}
	for i := range ids {
		r.do(ctx, i, 0, Operation{Method: methodGet, ID: ids[i]})
	}
}

// renew repeatedly puts a session after its lifetime has ended. A store that purges expired sessions must not remove
// the session that was put since.
func (r *recorder) renew(ctx context.Context, random *rand.Rand, horizon time.Duration) {
	id := newIDs(random.IntN(families))[0]
	for number := 0; r.now() < horizon && r.wrong == nil; number++ {
		r.do(ctx, number, 0, Operation{Method: methodPut, ID: id, Record: short(random, id, number), TTL: time.Second})
		kit.Must(kit.Pause(ctx, time.Duration(random.Int64N(int64(900*time.Millisecond)))))
		r.do(ctx, number, 0, Operation{Method: methodGet, ID: id})
		kit.Must(kit.Pause(ctx, time.Second+time.Duration(random.Int64N(int64(2*time.Second)))))
	}
}

// endTogether puts sessions, makes no calls while their lifetimes end, and then looks up each of them.
func (r *recorder) endTogether(ctx context.Context, random *rand.Rand) {
	const lifetime = 2 * time.Second
	var ids []string
	for number := range 20 {
		id := newIDs(random.IntN(families))[0]
		ids = append(ids, id)
		r.do(ctx, number, 0, Operation{Method: methodPut, ID: id, Record: short(random, id, number), TTL: lifetime})
	}
	kit.Must(kit.Pause(ctx, lifetime+slack+100*time.Millisecond))
	for i, id := range ids {
		r.do(ctx, i, 0, Operation{Method: methodGet, ID: id})
	}
}

// many keeps thousands of sessions, including pairs whose IDs collide in the hashes that stores use.
func many(ctx context.Context, trial *kit.Trial, s Subject) {
	const callers, batch = 32, 1000
	var ids []string
	for _, hash := range hashes() {
		ids = append(ids, collide(hash)...)
		ids = append(ids, collide(func(id string) uint32 { return hash(id) >> 8 })...)
	}
	for family := range families {
		ids = append(ids, newIDs(family)...)
	}
	for n := trial.Count(6000); len(ids) < n; {
		ids = append(ids, newIDs(4)...) // the longest
	}
	var more []string // enough for a store with a limit to drop something
	for n := trial.Count(5000); len(more) < n; {
		more = append(more, newIDs(0)...)
	}
	trial.Cover("%d sessions at the same time, with pairs of ids that collide in %d hashes, in batches of up to %d touches", len(ids)+len(more), len(hashes()), batch)
	r := s.record(trial)
	random := trial.Rand(0)
	random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	each := func(ids []string, operation func(i int) Operation) {
		ops := inOrder(ids, operation)
		kit.AtOnce(ctx, callers, callers, func(ctx context.Context, caller int) {
			for i := caller; i < len(ops) && r.wrong == nil; i += callers {
				r.do(ctx, caller, 0, ops[i])
			}
		})
	}
	get := func(i int) Operation { return Operation{Method: methodGet, ID: ids[i]} }
	for at, all := range [][]string{ids, more} {
		each(all, func(i int) Operation {
			rec := short(random, all[i], i+at)
			rec.Subject = fmt.Sprint("subject of ", all[i])
			return Operation{Method: methodPut, ID: all[i], Record: rec, TTL: time.Hour + time.Duration(i)*time.Minute}
		})
	}
	each(ids, get)
	for from := 0; from < len(ids) && r.wrong == nil; from += batch * 3 / 2 {
		var ops []Operation
		for i, id := range ids[from:min(from+batch*3/2, len(ids))] {
			if i%3 != 0 {
				ops = append(ops, Operation{Method: methodTouch, ID: id, Accessed: moment(random.IntN).Add(time.Duration(i) * time.Second), TTL: time.Duration(2+i%25) * 24 * time.Hour})
			}
		}
		if len(ops) > 0 {
			r.do(ctx, from/batch, 0, ops...)
		}
	}
	each(ids, get)
	each(ids, func(i int) Operation {
		if i%2 == 0 {
			return Operation{Method: methodDelete, ID: ids[i]}
		}
		return get(i)
	})
	each(ids, get)
	each(more, func(i int) Operation { return Operation{Method: methodGet, ID: more[i]} })
	r.check(ctx)
}

// inOrder creates the operations in order, so that the random choices are repeatable.
func inOrder(ids []string, operation func(i int) Operation) []Operation {
	ops := make([]Operation, len(ids))
	for i := range ops {
		ops[i] = operation(i)
	}
	return ops
}
