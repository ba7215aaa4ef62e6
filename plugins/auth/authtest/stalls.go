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

// stallsHold makes many calls that wait for the same response from the provider. Calls whose deadlines pass must
// return, and must not make the other calls fail. The result does not depend on the speed of the machine: the provider
// continues only after the short calls have returned.
func stallsHold(ctx context.Context, s Subject) error {
	n := s.trial.Count(12)
	s.trial.Cover("%d histories of calls with short and long deadlines", n)
	return kit.AtOnce(ctx, n, workers, func(ctx context.Context, i int) error {
		return s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) error { return st.stalls(ctx, i) })
	})
}

func (st *stage) stalls(ctx context.Context, number int) error {
	p, chance, late := st.provider, st.trial.Rand(number), st.prompt()
	at := []string{"", keysPath, documentPath}[number%3]
	steps := []string{"the provider does not answer requests for " + map[string]string{"": "anything", keysPath: "keys", documentPath: "metadata"}[at]}
	if number%2 == 1 && at != documentPath {
		if err := st.verify(ctx, st.bearer(p.Token()), "verify a good token"); err != nil {
			return err
		}
		p.Add()
		steps = append([]string{"verify a good token", "the provider adds a key"}, steps...)
	}
	stall := &fault{"does not answer", at, stalling}
	p.setFault(stall)
	if number%4 >= 2 {
		if err := st.givesUp(ctx, late, steps); err != nil {
			return err
		}
	}
	var short, long sync.WaitGroup
	results := make(chan error, 100)
	call := func(limit time.Duration, allowed answers, group *sync.WaitGroup) {
		token := p.Token(map[string]any{"sub": fmt.Sprint("user_", chance.IntN(1000))})
		req := st.bearer(token)
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			began := time.Now()
			id, err := st.adapter.Verify(ctx, req)
			d := st.judge(req, began, time.Now())
			d.unsure(allowed, "its deadline is "+limit.String(), sConcurrent)
			st.given.token("a bearer token", token, err)
			results <- history(d.check(ctx, id, err), append(steps, "many calls with different deadlines", "verify a good token with the deadline "+limit.String())...)
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
		return kit.NewFailure("nothing", fmt.Sprintf("an answer at most %s after the deadline", late), sConcurrent, append(steps, "verify a good token with a deadline of at most 500ms")...)
	}
	for i := range 4 {
		call(patient+time.Duration(i)*time.Second, accept, &long)
	}
	_ = kit.Pause(ctx, 100*time.Millisecond)
	p.setFault(nil)
	long.Wait()
	close(results)
	var failed error
	for err := range results {
		if err != nil {
			failed = err
		}
	}
	return failed
}

// givesUp makes many calls that end before the provider responds. Whatever they hold must be released.
func (st *stage) givesUp(ctx context.Context, late time.Duration, steps []string) error {
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
		return kit.NewFailure("nothing", fmt.Sprintf("an answer at most %s after the deadline", late), sConcurrent, append(steps, "verify good tokens with the deadline 200ms, 64 at a time")...)
	}
	return nil
}

// ended reports whether all calls of a group end within this time.
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

// documentsHold checks Describe and Metadata while nothing is wrong. Histories of outages check them in every other case.
func documentsHold(ctx context.Context, s Subject) error {
	return s.staged(ctx, []Setup{OneOrganization, AnyOrganization}, func(st *stage) error {
		o := &outage{stage: st}
		s.trial.Cover("Describe and Metadata, twice")
		for _, ask := range []func(context.Context) error{o.describes, o.asksMetadata, o.describes, o.asksMetadata} {
			if err := ask(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// describes compares the description with the settings.
func (o *outage) describes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.patience())
	defer cancel()
	d, err := o.adapter.Describe(ctx)
	again, err2 := o.adapter.Describe(ctx)
	p := o.provider
	fail := func(answered any, demanded, sentence string) error {
		return kit.NewFailure(fmt.Sprintf("%+v", answered), demanded, sentence, append(o.steps, "Describe")...)
	}
	switch {
	case err != nil || err2 != nil:
		return fail(errors.Join(err, err2), "a description", sDescribe)
	case !reflect.DeepEqual(d, again):
		return fail(again, fmt.Sprintf("the same as before: %+v", d), sDescribe)
	case d.Issuer == "", p != nil && d.Issuer != p.Issuer(), o.world.issuer != "" && d.Issuer != o.world.issuer:
		return fail(d.Issuer, fmt.Sprintf("the issuer %q of its settings or samples", o.world.issuer), sIssuer)
	case p != nil && len(d.AuthorizationServers) == 0:
		return fail(d.AuthorizationServers, "an authorization server", sServers)
	case p != nil && len(d.Algorithms) > 0 && !strings.Contains(strings.Join(d.Algorithms, " "), "RS256"):
		return fail(d.Algorithms, "RS256 among the algorithms", sRS256)
	}
	for _, server := range d.AuthorizationServers {
		if !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://") {
			return fail(server, "an absolute URL", sServers)
		}
	}
	return nil
}

// requests returns how many requests for metadata the provider has received.
func (o *outage) requests() int {
	if o.provider == nil {
		return 0
	}
	o.provider.mu.Lock()
	defer o.provider.mu.Unlock()
	return o.provider.documents
}

// sentDocument reports whether the adapter has received the metadata, for whatever purpose.
func (o *outage) sentDocument() bool {
	o.provider.mu.Lock()
	defer o.provider.mu.Unlock()
	return o.provider.document.After(o.started)
}

// asksMetadata compares the metadata with the provider's document, value by value.
func (o *outage) asksMetadata(ctx context.Context) error {
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
	fail := func(demanded, sentence string) error {
		return kit.NewFailure(said(auth.Identity{}, errors.Join(err, errors.New(clip(string(raw), 200)))), demanded, sentence, steps...)
	}
	switch {
	case o.provider == nil && (errors.Is(err, plugins.ErrNotFound) || err == nil && readObject(raw) != nil):
		return nil
	case o.provider == nil:
		return fail("one JSON object, or NOT_FOUND", sMetadata)
	case err != nil && answered(ctx, err) == cannotTell && !o.metadata && (about || !o.since.IsZero() && time.Since(o.since) < span+time.Second):
		return nil
	case err != nil && about && !o.metadata:
		return fail("UNAVAILABLE", sNoMetadata)
	case err != nil:
		return fail("the document of the provider", sMetadata)
	case about && !o.metadata && !o.sentDocument():
		return fail("UNAVAILABLE", sNotUsed)
	}
	o.metadata = true
	have, want := readObject(raw), readObject(must(json.Marshal(o.provider.metadata())))
	if !reflect.DeepEqual(have, want) {
		return fail("the document as the provider wrote it: "+clip(show(want), 200), sMetadata)
	}
	return nil
}

// introspectionHolds varies what the provider says about tokens, including no valid response.
func introspectionHolds(ctx context.Context, s Subject) error {
	return s.staged(ctx, []Setup{Introspecting}, func(st *stage) error {
		p := st.provider
		failing := append([]*fault{nil}, outagesOf(introspectPath)...)
		s.trial.Cover("%d kinds of answers", len(failing)+7)
		known := p.Token() // about which the provider changes its mind
		for round := range 2 {
			for i, kind := range []string{"", "is not active", "is about another subject", `{"active": "true"}`, `{}`, `{"active": null}`, `{"active": 1}`, ""} {
				for _, f := range failing {
					if f != nil && i > 0 {
						continue
					}
					p.mu.Lock()
					p.inactive = kind
					p.mu.Unlock()
					p.setFault(f)
					good := p.Token(map[string]any{"jti": fmt.Sprint(round, i, f)})
					if f == nil && round == 1 {
						good = known
					}
					step, limit := fmt.Sprintf("verify a good token about which the provider says %q", kind), s.patience()
					if f != nil {
						step, limit = "verify a good token while the introspection endpoint "+f.name, 1500*time.Millisecond
					}
					err := st.call(ctx, limit, st.bearer(good), func(d *demand, _ time.Time) {
						switch {
						case f != nil || strings.HasPrefix(kind, "{"):
							d.unsure(cannotTell, "the provider did not say whether the token is active", sAsks)
						case kind != "":
							d.unsure(refuse, "the token "+kind, sAsks)
						}
					}, step)
					p.setFault(nil)
					if err != nil {
						return err
					}
				}
			}
			expired := p.Token(map[string]any{"exp": time.Now().Unix() - 3600})
			if err := st.verify(ctx, st.bearer(expired), "verify an expired token that the provider says is active"); err != nil {
				return err
			}
		}
		return nil
	})
}
