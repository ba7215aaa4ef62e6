package authtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
)

// span is how long the contract lets an adapter take to notice a change at the provider.
const span = 15 * time.Second

// outage is a history of a provider that changes and fails, and what the model knows about it.
type outage struct {
	*stage
	chance    *rand.Rand
	steps     []string
	fault     *fault
	since     time.Time // when the last fault ended
	changed   time.Time // when the provider published its last key
	metadata  bool      // the adapter has returned the metadata at least once
	former    []*signer
	floods    int
	documents int // number of requests for documents caused by Metadata
}

// checkOutages tries histories of a provider that adds and removes keys and fails in every way. The histories are
// independent and mostly wait, so many of them run concurrently.
func checkOutages(ctx context.Context, s Subject) {
	all := outages()
	n := s.trial.Count(3 * len(all))
	s.trial.Cover("%d histories of %d kinds of outages", n, len(all))
	kit.AtOnce(ctx, n, workers, func(ctx context.Context, i int) {
		chance := s.trial.Rand(i)
		f := all[(i+int(s.trial.Seed%uint64(len(all))))%len(all)] //nolint:gosec // small
		cold := i/len(all)%3 == 0 || s.trial.Effort == kit.Quick && i%2 == 0
		shortest(ctx, s.trial, plan(chance, cold), func(steps []string) { s.runOutage(ctx, f, steps, i) })
	})
}

// plan returns the steps of a history.
func plan(chance *rand.Rand, cold bool) []string {
	usual := []string{"good", "good", "forged", "expired", "unknown", "describe", "metadata", "junk"}
	pick := func(all ...string) string { return all[chance.IntN(len(all))] }
	var steps []string
	some := func(n int, more ...string) {
		for range n {
			steps = append(steps, pick(append(more, usual...)...))
		}
	}
	if !cold {
		if chance.IntN(4) == 0 {
			steps = append(steps, "slow", "good", "quick")
		}
		steps = append(steps, "good", pick("metadata", "describe", "good"))
		some(2, "odd keys", "flood")
		if chance.IntN(2) == 0 {
			steps = append(steps, "add", "good", "older")
		}
		if chance.IntN(2) == 0 {
			steps = append(steps, "rotate", pick("good", "good", "former"), "former", "good")
		}
		if chance.IntN(3) == 0 {
			steps = append(steps, pick("flood", "good", "unknown"), pick("add", "rotate", "early"), "found")
		}
	}
	steps = append(steps, "outage", "describe", "metadata")
	some(5, "former", "add", "older")
	steps = append(steps, "good", "back", "good", "metadata")
	some(3, "former", "older", "flood")
	return steps
}

// shortest repeats a failed history with fewer steps, for at most trial.Shorten. The failure of the shortest history
// that fails ends the property.
func shortest(ctx context.Context, trial *kit.Trial, steps []string, try func([]string)) {
	failed := kit.Catch(func() { try(steps) })
	until := time.Now().Add(trial.Shorten)
	for at := 0; failed != nil && at < len(steps) && time.Now().Before(until) && ctx.Err() == nil; {
		fewer := slices.Delete(slices.Clone(steps), at, at+1)
		if err := kit.Catch(func() { try(fewer) }); err != nil {
			steps, failed = fewer, err
		} else {
			at++
		}
	}
	kit.Must(failed)
}

// runOutage runs one history.
func (s Subject) runOutage(ctx context.Context, f *fault, steps []string, number int) {
	setups := s.setups(AnyOrganization, OneOrganization)
	if len(setups) == 0 {
		kit.Must(s.lacks(AnyOrganization))
	}
	o := &outage{chance: s.trial.Rand(number)}
	if len(steps) > 0 && steps[0] == "outage" {
		o.fault = f
	}
	o.stage = kit.Got(s.open(ctx, setups[0], o.fault))
	o.provider.set(func(s *state) { s.caching = []string{"", "public, max-age=86400", "no-store"}[number%3] })
	o.play(func() {
		for _, step := range steps {
			if o.step(ctx, step, f); ctx.Err() != nil {
				return
			}
		}
	})
}

// step performs one step and checks the result.
func (o *outage) step(ctx context.Context, step string, f *fault) {
	p := o.provider
	o.steps = append(o.steps, step)
	key := p.signer()
	good := map[string]any{"jti": fmt.Sprint(len(o.steps))}
	switch step {
	case "outage":
		o.steps[len(o.steps)-1] = "the provider " + f.name
		o.fault = f
		p.setFault(f)
		return
	case "back":
		o.steps[len(o.steps)-1] = "the provider is back"
		o.fault, o.since = nil, time.Now()
		p.setFault(nil)
		o.waitUntilAccepted(ctx, o.since, "the provider came back", sBack)
		return
	case "found":
		if o.changed.IsZero() {
			return
		}
		o.waitUntilAccepted(ctx, o.changed, "the provider added its key", sAdded)
		return
	case "slow", "quick":
		o.steps[len(o.steps)-1] = "the provider is " + step
		p.setFault(map[string]*fault{"slow": {"is slow", "", delaying}}[step])
		return
	case "odd keys":
		p.set(func(s *state) { s.odd = true })
		return
	case "add":
		p.Add()
		o.changed = time.Now()
		return
	case "early": // a token comes before its key is published
		key = p.Add()
		p.publish(key, false)
		defer func() {
			p.publish(key, true)
			o.changed = time.Now()
		}()
	case "rotate":
		o.former = append(o.former, key)
		p.Rotate()
		o.changed = time.Now()
		return
	case "former":
		if len(o.former) == 0 {
			return
		}
		key = last(o.former)
	case "older":
		key = p.oldest()
	case "forged":
		key = &signer{key.kid, "sig", p.keys.forger}
	case "unknown":
		key = &signer{fmt.Sprint("nobody-", o.chance.Uint64()), "sig", p.keys.forger}
	case "expired":
		good["exp"] = time.Now().Unix() - 3600
	case "flood":
		o.flood(ctx)
		return
	case "metadata":
		o.requestMetadata(ctx)
		return
	case "describe":
		o.describe(ctx)
		return
	}
	token := p.tokenOf(key, changed(p.Claims(), good))
	if step == "junk" {
		token = junk()[o.chance.IntN(10)]
	}
	limit := o.patience()
	if o.fault != nil && !p.wasRead(key) {
		limit = 1500 * time.Millisecond // waiting longer cannot help
	}
	asked := o.askedRecently(time.Now())
	o.call(ctx, limit, o.bearer(token), func(d *demand, from time.Time) { o.adjust(d, from, asked) }, o.steps...)
}

// wasRead reports whether a key was in a key set that was sent.
func (p *Provider) wasRead(key *signer) bool {
	return slices.ContainsFunc(p.now().read, func(r reading) bool { return slices.Contains(r.keys, key) })
}

// knowable reports what an adapter started at started can know about a key by the time until. The results say whether
// it has read a key set, whether it has read one with the key, and whether the latest one lacks the key.
func (s *state) knowable(key *signer, started, until time.Time) (read, seen, reread bool) {
	for _, r := range s.read {
		if r.at.After(started) && r.at.Before(until) {
			has := slices.Contains(r.keys, key)
			read, seen, reread = true, seen || has, !has
		}
	}
	return read, seen, reread
}

// since returns the times after moment at which the keys were requested.
func (s state) since(moment time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(s.asked), func(at time.Time) bool { return !at.After(moment) })
}

// askedRecently reports whether the adapter has read the key set so recently that it need not read it again.
func (o *outage) askedRecently(now time.Time) bool {
	asked := o.provider.now().since(o.started)
	count := 0
	for _, at := range asked {
		if now.Sub(at) < span {
			count++
		}
	}
	return count > 1 || count == 1 && now.Sub(asked[0]) >= span // the first read does not count
}

// adjust changes the oracle's demand, which assumes a working provider, to what the adapter can know about this one. It
// models the key set that the adapter has read.
func (o *outage) adjust(d *demand, from time.Time, asked bool) {
	now := o.provider.now()
	published := slices.Contains(now.published, d.signer)
	read, seen, reread := now.knowable(d.signer, o.started, from)
	misled := o.fault != nil && o.fault.at == documentPath && !read && now.documents > o.documents
	switch {
	case d.clause != "": // rejected regardless of the key that signed it
		if o.fault != nil || !read {
			d.allowed |= cannotTell
		}
	case !published && seen && reread:
		d.unsure(refuse, "the provider has removed its key, and the adapter has read the key set since", sRemoved)
	case !published:
		d.unsure(accept|refuse, "the provider has removed its key, but the adapter need not know that yet", sRemoved)
	case seen && o.fault != nil:
		d.sentence = sKept
	case seen:
	case o.fault == nil && asked:
		d.unsure(accept|refuse|cannotTell, "the adapter has recently read the key set", sAdded)
	case o.fault == nil && read:
		d.why, d.sentence = "the provider has added its key", sAdded
	case o.fault == nil:
		d.why, d.sentence = "its key can be read", sSlow
	case o.fault.at == documentPath && !misled:
		d.unsure(accept|cannotTell, "the provider "+o.fault.name+", and its keys can be read", sNotUsed)
	default:
		d.unsure(cannotTell, "the provider "+o.fault.name+", and its key had not been read before", sCannotTell)
		if strings.Contains(o.fault.name, "writes") || strings.Contains(o.fault.name, "redirects") {
			d.sentence = sNotUsed
		}
	}
	if o.fault != nil && !seen && d.clause == "" {
		d.allowed |= cannotTell
		if asked && read {
			d.allowed |= refuse
		}
	}
	if !published && o.fault != nil {
		d.allowed |= cannotTell
	}
}

// waitUntilAccepted waits until a valid token is accepted. The contract allows 15 seconds for that from the event,
// which happened at since.
func (o *outage) waitUntilAccepted(ctx context.Context, since time.Time, event, sentence string) {
	for {
		began := time.Now()
		err, wrong := o.ask(ctx, o.patience(), o.bearer(o.provider.Token(map[string]any{"jti": fmt.Sprint(began.UnixNano())})), func(d *demand, from time.Time) {
			switch asked := o.askedRecently(from); {
			case from.Sub(since) > span+time.Second:
				d.unsure(accept, "15 s have passed since "+event, sentence)
			case asked:
				d.unsure(accept|cannotTell|refuse, event+" less than 15 s ago", sentence)
			default:
				d.unsure(accept|cannotTell, event+" less than 15 s ago", sCannotTell)
			}
		})
		kit.Must(kit.After(wrong, append(o.steps, fmt.Sprintf("verify a valid token, %s later", began.Sub(since).Round(time.Second)))...))
		if err == nil || ctx.Err() != nil {
			return
		}
		_ = kit.Pause(ctx, 300*time.Millisecond)
	}
}

// flood sends tokens with unknown key ids.
func (o *outage) flood(ctx context.Context) {
	const tokens, maximum = 60, 6
	if o.floods++; o.fault != nil || o.floods > 1 || !o.since.IsZero() {
		return
	}
	began := time.Now()
	kit.AtOnce(ctx, tokens, workers, func(ctx context.Context, i int) {
		token := compact(map[string]any{"alg": "RS256", "typ": "JWT", "kid": fmt.Sprint("flood-", i)}, o.provider.Claims(), func([]byte) []byte { return make([]byte, 256) })
		o.call(ctx, o.patience(), o.bearer(token), func(d *demand, from time.Time) { o.adjust(d, from, false) }, o.steps...)
	})
	asked := slices.DeleteFunc(o.provider.now().since(began), func(at time.Time) bool { return at.Sub(began) >= time.Minute })
	if len(asked) > maximum {
		kit.Reject(fmt.Sprintf("%d requests for keys", len(asked)), fmt.Sprintf("at most %d a minute", maximum), sSixTimes, append(o.steps, fmt.Sprintf("verify %d tokens with unknown key ids", tokens))...)
	}
}
