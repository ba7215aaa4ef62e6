package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// checkStalls makes many calls that wait for the same response from the provider. Calls whose deadlines pass must
// return, and must not make the other calls fail. The result does not depend on the speed of the machine: the provider
// continues only after the short calls have returned.
func checkStalls(ctx context.Context, s Subject) {
	n := s.trial.Count(12)
	s.trial.Cover("%d histories of calls with short and long deadlines", n)
	kit.AtOnce(ctx, n, workers, func(ctx context.Context, i int) {
		s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) { st.stalls(ctx, i) })
	})
}

func (st *stage) stalls(ctx context.Context, number int) {
	p, chance, late := st.provider, st.trial.Rand(number), st.prompt()
	at := []string{"", keysPath, documentPath}[number%3]
	steps := []string{"the provider does not respond to requests for " + map[string]string{"": "anything", keysPath: "keys", documentPath: "metadata"}[at]}
	if number%2 == 1 && at != documentPath {
		st.verify(ctx, st.bearer(p.Token()), "verify a valid token")
		p.Add()
		steps = append([]string{"verify a valid token", "the provider adds a key"}, steps...)
	}
	stall := &fault{"does not respond", at, stalling}
	p.setFault(stall)
	if number%4 >= 2 {
		st.giveUp(ctx, late, steps)
	}
	var short, long sync.WaitGroup
	results := make(chan error, 100)
	call := func(limit time.Duration, allowed answers, group *sync.WaitGroup) {
		req := st.bearer(p.Token(map[string]any{"sub": fmt.Sprint("user_", chance.IntN(1000))}))
		group.Go(func() {
			_, wrong := st.ask(ctx, limit, req, func(d *demand, _ time.Time) { d.unsure(allowed, "its deadline is "+limit.String(), sConcurrent) })
			results <- kit.After(wrong, append(steps, "many calls with different deadlines", "verify a valid token with the deadline "+limit.String())...)
		})
	}
	call(100*time.Millisecond, cannotTell|accept, &short) // causes the request to the provider
	if at == "" || number%2 == 0 {
		select {
		case <-p.reached:
		case <-time.After(late): // the adapter needs no further keys
		}
	}
	patient := st.patience() + span
	for i := range 8 {
		call(time.Duration(100+50*i)*time.Millisecond, cannotTell|accept, &short)
		call(patient, accept, &long)
	}
	if !ended(&short, 500*time.Millisecond+late) {
		kit.Reject("nothing", fmt.Sprintf("a response at most %s after the deadline", late), sConcurrent, append(steps, "verify a valid token with a deadline of at most 500ms")...)
	}
	for i := range 4 {
		call(patient+time.Duration(i)*time.Second, accept, &long)
	}
	_ = kit.Pause(ctx, 100*time.Millisecond)
	p.setFault(nil)
	long.Wait()
	close(results)
	for err := range results {
		kit.Must(err)
	}
}

// giveUp makes many calls that end before the provider responds. They must release whatever they have acquired.
func (st *stage) giveUp(ctx context.Context, late time.Duration, steps []string) {
	p := st.provider
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	var calls sync.WaitGroup
	for range 64 {
		token := p.Token()
		calls.Go(func() {
			_, _ = st.adapter.Verify(ctx, st.bearer(token))
		})
	}
	if !ended(&calls, late) {
		kit.Reject("nothing", fmt.Sprintf("a response at most %s after the deadline", late), sConcurrent, append(steps, "verify valid tokens with the deadline 200ms, 64 at a time")...)
	}
}

// ended reports whether all calls in a group end within the given time.
func ended(calls *sync.WaitGroup, within time.Duration) bool {
	done := make(chan struct{})
	go func() {
		calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}

// checkDocuments checks Describe and Metadata while nothing is wrong. Histories of outages check them in every other
// case.
func checkDocuments(ctx context.Context, s Subject) {
	s.staged(ctx, []Setup{OneOrganization, AnyOrganization}, func(st *stage) {
		o := &outage{stage: st}
		s.trial.Cover("Describe and Metadata, twice")
		for range 2 {
			o.describe(ctx)
			o.requestMetadata(ctx)
		}
	})
}

// describe compares the description with the settings.
func (o *outage) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, o.patience())
	defer cancel()
	d, err := o.adapter.Describe(ctx)
	again, err2 := o.adapter.Describe(ctx)
	p := o.provider
	fail := func(answered any, demanded, sentence string) {
		kit.Reject(fmt.Sprintf("%+v", answered), demanded, sentence, append(o.steps, "Describe")...)
	}
	switch {
	case err != nil || err2 != nil:
		fail(errors.Join(err, err2), "a description", sDescribe)
	case !reflect.DeepEqual(d, again):
		fail(again, fmt.Sprintf("the same description as before: %+v", d), sDescribe)
	case d.Issuer == "", p != nil && d.Issuer != p.Issuer(), o.world.issuer != "" && d.Issuer != o.world.issuer:
		fail(d.Issuer, fmt.Sprintf("the issuer %q from its settings or samples", o.world.issuer), sIssuer)
	case p != nil && len(d.AuthorizationServers) != 1:
		fail(d.AuthorizationServers, "one authorization server", sServers)
	case p != nil && len(d.Algorithms) > 0 && !strings.Contains(strings.Join(d.Algorithms, " "), "RS256"):
		fail(d.Algorithms, "RS256 among the algorithms", sRS256)
	}
	for _, server := range d.AuthorizationServers {
		if !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://") {
			fail(server, "an absolute URL", sServers)
		}
	}
}

// requests returns how many requests for metadata the provider has received.
func (o *outage) requests() int {
	if o.provider == nil {
		return 0
	}
	return o.provider.now().documents
}

// sentDocument reports whether the adapter has received the metadata, for whatever purpose.
func (o *outage) sentDocument() bool {
	return o.provider.now().document.After(o.started)
}

// requestMetadata compares the metadata with the provider's document, value by value.
func (o *outage) requestMetadata(ctx context.Context) {
	about := o.fault != nil && o.fault.at != keysPath
	limit := o.patience()
	if about && !o.metadata {
		limit = time.Second // waiting longer cannot help
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	before := o.requests()
	raw, err := o.adapter.Metadata(ctx)
	o.documents += o.requests() - before
	steps := append(o.steps, "Metadata")
	fail := func(demanded, sentence string) {
		kit.Reject(describeResult(auth.Identity{}, errors.Join(err, errors.New(clip(string(raw), 200)))), demanded, sentence, steps...)
	}
	switch {
	case o.provider == nil && (errors.Is(err, plugins.ErrNotFound) || err == nil && readObject(raw) != nil):
		return
	case o.provider == nil:
		fail("one JSON object, or NOT_FOUND", sMetadata)
	case err != nil && answered(ctx, err) == cannotTell && !o.metadata && (about || !o.since.IsZero() && time.Since(o.since) < span+time.Second):
		return
	case err != nil && about && !o.metadata:
		fail("UNAVAILABLE", sNoMetadata)
	case err != nil:
		fail("the provider's document", sMetadata)
	case about && !o.metadata && !o.sentDocument():
		fail("UNAVAILABLE", sNotUsed)
	}
	o.metadata = true
	have, want := readObject(raw), readObject(must(json.Marshal(o.provider.metadata())))
	if !reflect.DeepEqual(have, want) {
		fail("the document as the provider wrote it: "+clip(show(want), 200), sMetadata)
	}
}

// checkIntrospection varies the provider's responses about tokens, including invalid ones.
func checkIntrospection(ctx context.Context, s Subject) {
	s.staged(ctx, []Setup{Introspecting}, func(st *stage) {
		p := st.provider
		failing := append([]*fault{nil}, outagesOf(introspectPath)...)
		s.trial.Cover("%d kinds of responses", len(failing)+7)
		known := p.Token() // the provider will change its verdict about this one
		for round := range 2 {
			for i, kind := range []string{"", "is not active", "is about another subject", `{"active": "true"}`, `{}`, `{"active": null}`, `{"active": 1}`, ""} {
				for _, f := range failing {
					if f != nil && i > 0 {
						continue
					}
					p.set(func(s *state) { s.inactive = kind })
					p.setFault(f)
					good := p.Token(map[string]any{"jti": fmt.Sprint(round, i, f)})
					if f == nil && round == 1 {
						good = known
					}
					step, limit := fmt.Sprintf("verify a valid token about which the provider reports %q", kind), s.patience()
					if f != nil {
						step, limit = "verify a valid token while the introspection endpoint "+f.name, 1500*time.Millisecond
					}
					st.call(ctx, limit, st.bearer(good), func(d *demand, _ time.Time) {
						switch {
						case f != nil || strings.HasPrefix(kind, "{"):
							d.unsure(cannotTell, "the provider did not say whether the token is active", sAsks)
						case kind != "":
							d.unsure(refuse, "the token "+kind, sAsks)
						}
					}, step)
					p.setFault(nil)
				}
			}
			st.verify(ctx, st.bearer(p.Token(map[string]any{"exp": time.Now().Unix() - 3600})), "verify an expired token that the provider reports as active")
		}
	})
}
