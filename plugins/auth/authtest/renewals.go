package authtest

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// signedIn is a completed login, and what the model knows about it.
type signedIn struct {
	subject, session string
	refreshes        bool
	renewal          plugins.Secret
	key              *signer // signed its last id token
	over             bool    // the provider has ended it
	spent            bool    // its access token has expired, and there is no refresh token
}

// sessionsRun is a history of logins that are checked repeatedly.
type sessionsRun struct {
	*stage
	chance *mathrand.Rand
	steps  []string
	logins []*signedIn
	fault  *fault
	turned bool    // the keys have changed since
	answer answers // to the last check
}

// checkRenewals tries histories of logins that are checked while the provider ends them, changes its keys and fails.
func checkRenewals(ctx context.Context, s Subject) {
	if !s.Rechecks {
		kit.Must(kit.DoesNotApply("the adapter does not declare the capability sessions"))
	}
	n := s.trial.Count(60)
	s.trial.Cover("%d histories of logins that are checked again, and one with each change of a new id token", n)
	setups := []Setup{AnyOrganization, OneOrganization}
	kit.AtOnce(ctx, n+1, workers/2, func(ctx context.Context, i int) {
		if i == n {
			s.staged(ctx, setups, func(st *stage) {
				r := &sessionsRun{stage: st, chance: s.trial.Rand(i)}
				r.everyIDToken(ctx)
			})
			return
		}
		chance := s.trial.Rand(i)
		steps := []string{"sign in", "check"}
		all := []string{"sign in", "check", "check", "check", "check", "end", "become", "access over", "rotate", "add", "restart", "outage", "garbage", "half", "another's", "no id token", "at once"}
		for range 9 {
			steps = append(steps, all[chance.IntN(len(all))], "check")
		}
		shortest(ctx, s.trial, steps, func(steps []string) {
			s.staged(ctx, setups, func(st *stage) {
				r := &sessionsRun{stage: st, chance: s.trial.Rand(i)}
				st.provider.set(func(a *state) { a.reuses = i%3 == 2 })
				for _, step := range steps {
					r.step(ctx, step)
				}
				kit.Must(ctx.Err())
			})
		})
	})
}

// signIn logs in a new subject.
func (r *sessionsRun) signIn(ctx context.Context, subject string, refreshes bool) {
	p, a := r.provider, newAttempt()
	p.set(func(acc *state) { acc.subject, acc.refreshes = subject, refreshes })
	id, f := r.exchange(ctx, r.patience(), a.exchange(r.browse(ctx, a)), func(from, to time.Time) demand {
		d := r.ofLogin(a, a.nonce)(from, to)
		if r.readRecently() && !p.wasRead(p.signer()) {
			d.unsure(accept|refuse|cannotTell, "the adapter has recently read the key set", sAdded)
		}
		return d
	})
	if f == nil && id.Subject == "" {
		return // the adapter could not get the key yet
	}
	if f == nil && (id.Renewal == "" && refreshes || len(id.Renewal) > 32<<10) {
		f = kit.NewFailure(fmt.Sprintf("a renewal of %d bytes", len(id.Renewal)), "a renewal of 1 byte to 32 KiB, because the provider issued a refresh token", sRenewal)
	}
	if kit.Must(kit.After(f, r.steps...)); id.Renewal != "" {
		r.logins = append(r.logins, &signedIn{subject: subject, session: id.SessionID, refreshes: refreshes, renewal: id.Renewal, key: p.signer()})
	}
}

// readRecently reports whether the adapter has read the key set more than once, so that it need not read it again for a
// new key.
func (r *sessionsRun) readRecently() bool {
	return len(r.provider.now().since(r.started)) > 1
}

// drop removes a login whose state is no longer known.
func (r *sessionsRun) drop(l *signedIn) {
	r.logins = slices.DeleteFunc(r.logins, func(other *signedIn) bool { return other == l })
}

func (r *sessionsRun) step(ctx context.Context, step string) {
	p := r.provider
	if len(r.logins) == 0 && step != "sign in" {
		return
	}
	r.steps = append(r.steps, step)
	if step == "sign in" {
		subject, refreshes := fmt.Sprint("user_", len(r.steps)), r.chance.IntN(4) > 0
		r.steps[len(r.steps)-1] = fmt.Sprintf("log %s in, with a refresh token: %t", subject, refreshes)
		r.signIn(ctx, subject, refreshes)
		return
	}
	l := r.logins[r.chance.IntN(len(r.logins))]
	switch step {
	case "end":
		r.steps[len(r.steps)-1] = "the provider ends the session of " + l.subject
		l.over = true
		p.set(func(a *state) {
			for _, all := range []map[string]grant{a.access, a.refresh} {
				for _, g := range all {
					a.ended[g.session] = a.ended[g.session] || g.subject == l.subject
				}
			}
		})
	case "become":
		p.set(func(a *state) { a.becomes = "user_mallory" })
		r.check(ctx, l, "while the provider responds about user_mallory", func(d *demand) { d.unsure(refuse, "it is now about another subject", sEnds) })
		p.set(func(a *state) { a.becomes = "" })
		if l.refreshes { // its refresh token may have been used up
			r.drop(l)
		}
	case "access over":
		p.set(func(a *state) { clear(a.access) })
		for _, l := range r.logins {
			l.spent = !l.refreshes
		}
	case "rotate", "add":
		if r.turned {
			return
		}
		if r.turned = true; step == "add" {
			p.Add()
		} else {
			p.Rotate()
		}
	case "restart":
		r.turned = false
		kit.Must(r.restart(ctx))
	case "outage":
		r.outage(ctx, l)
	case "garbage", "half", "another's":
		r.wrongRenewal(ctx, l, step)
	case "no id token":
		if !l.refreshes || l.over {
			return
		}
		p.set(func(a *state) { a.forge = func(map[string]any) any { return nil } })
		defer p.set(func(a *state) { a.forge = nil })
		r.check(ctx, l, "without a new id token", nil)
	case "at once":
		r.atOnce(ctx)
	case "check":
		r.check(ctx, l, "", nil)
	}
}

// check checks a login and compares the result with the model. adjust changes the demand after the provider has
// responded.
func (r *sessionsRun) check(ctx context.Context, l *signedIn, how string, adjust func(*demand)) {
	p := r.provider
	sessions, ok := r.adapter.(auth.Sessions)
	if !ok {
		kit.Reject("no such method", "CheckSession", sSessions)
	}
	limit := r.patience()
	if r.fault != nil {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := r.demanded(l)
	p.set(func(a *state) { a.idTokens[""] = "" })
	id, err := sessions.CheckSession(ctx, auth.SessionCheck{Renewal: l.renewal, Subject: l.subject})
	if adjust != nil {
		adjust(&d)
	}
	r.given.error("the renewal", l.renewal.Reveal(), err)
	for _, secret := range p.now().given {
		if err != nil && strings.HasPrefix(secret.What, "a refresh token") {
			r.given.error(secret.What, secret.Text, err)
		}
	}
	f := d.check(ctx, id, err)
	r.answer = answered(ctx, err)
	switch j := readJWS(p.idToken("")); {
	case err == nil:
		if l.renewal = id.Renewal; j != nil && l.refreshes {
			l.key = p.signed("RS256", j)
		}
	case d.allowed&accept != 0 && r.fault == nil: // the renewal may have been used up
		r.drop(l)
	}
	kit.Must(kit.After(f, append(r.steps, strings.TrimSpace("CheckSession of "+l.subject+" "+how))...))
}

// demanded returns what the contract requires of a check of this login now.
func (r *sessionsRun) demanded(l *signedIn) demand {
	p := r.provider
	d := demand{allowed: accept, why: "the provider vouches for it", sentence: sConfirms}
	lately := r.readRecently()
	now := p.now()
	published := slices.Contains(now.published, l.key)
	known, _, reread := now.knowable(l.key, r.started, time.Now())
	_, seen, _ := now.knowable(last(rsaKeys(now.ever)), r.started, time.Now())
	switch {
	case l.over || l.spent:
		d.unsure(refuse, "the provider has ended it", sEnds)
	case !published && (reread || !known):
		d.unsure(refuse, "its key is no longer among the provider's", sEnds)
	case !published:
		d.unsure(accept|refuse, "its key is no longer among the provider's, but the adapter need not know that yet", sEnds)
	case !seen && known && lately:
		d.unsure(accept|refuse|cannotTell, "the adapter has recently read the key set", sConfirms)
	}
	if r.fault != nil {
		d.allowed = d.allowed&refuse | cannotTell
		d.sentence, d.why = sUnreachable, "the provider "+r.fault.name
	}
	d.judge = func(id auth.Identity) (string, string) {
		switch {
		case id.Issuer != p.Issuer() || id.Subject != l.subject:
			return fmt.Sprintf("the subject %q of %q", l.subject, p.Issuer()), sConfirms
		case id.Renewal == "" || len(id.Renewal) > 32<<10:
			return "a renewal of 1 byte to 32 KiB", sRenewal
		case id.SessionID != "" && id.SessionID != l.session:
			return fmt.Sprintf("the session %q", l.session), sNamed
		case !id.ExpiresAt.IsZero() && id.OrganizationID != p.Organization && !r.world.limits.NoOrganization:
			return fmt.Sprintf("the organization %q", p.Organization), sOwn
		case id.Email != "" && id.Email != emailOf(l.subject):
			return "the e-mail address of the subject, or none", sEmail
		}
		return "", ""
	}
	return d
}

// outage checks a login while the provider fails, and again once it has recovered.
func (r *sessionsRun) outage(ctx context.Context, l *signedIn) {
	all := slices.DeleteFunc(outages(), func(f *fault) bool { return f.at != "" })
	r.fault = all[r.chance.IntN(len(all))]
	r.provider.setFault(r.fault)
	r.check(ctx, l, "while the provider "+r.fault.name, nil)
	r.fault = nil
	r.provider.setFault(nil)
	for back := time.Now(); ctx.Err() == nil; _ = kit.Pause(ctx, 300*time.Millisecond) {
		early := time.Since(back) < span
		r.check(ctx, l, "once the provider is back", func(d *demand) {
			if early && d.allowed == accept {
				d.unsure(accept|cannotTell, "the provider has recovered", sBack)
			}
		})
		if r.answer != cannotTell || !early {
			break
		}
		r.logins = append(r.logins, l) // a renewal that was not sent is not used up
	}
}

// wrongRenewal checks a login with a renewal that does not belong to it.
func (r *sessionsRun) wrongRenewal(ctx context.Context, l *signedIn, step string) {
	wrong := *l
	switch good := l.renewal.Reveal(); step {
	case "garbage":
		all := []string{"", "undefined", "{}", `{"sub":"` + l.subject + `"}`, strings.Repeat("x", 32<<10), "null", "[]", "a-renewal-that-nobody-issued-0123456789"}
		wrong.renewal = plugins.Secret(all[r.chance.IntN(len(all))])
	case "half":
		wrong.renewal = plugins.Secret(good[:len(good)/2])
	case "another's":
		other := r.logins[r.chance.IntN(len(r.logins))]
		if other == l {
			return
		}
		wrong.renewal = other.renewal
		r.drop(other) // its renewal may have been used up
		r.check(ctx, &wrong, "with the renewal of "+other.subject, func(d *demand) { d.unsure(refuse, "the renewal is about another subject", sEnds) })
		return
	}
	r.check(ctx, &wrong, "with a made-up renewal", func(d *demand) { d.unsure(refuse, "the adapter did not issue the renewal", sEnds) })
}

// everyIDToken refreshes logins with id tokens that are each changed in one way. Random histories would rarely include
// the one change that an adapter overlooks.
func (r *sessionsRun) everyIDToken(ctx context.Context) {
	table := r.provider.idTable()
	for at, p := range table[:len(table)-2] { // except nonces, which a new id token need not have, and spellings
		for v, chosen := range p.values {
			if r.trial.Effort == kit.Quick && r.chance.IntN(4) > 0 {
				continue
			}
			subject := fmt.Sprintf("user_%d_%d", at, v)
			r.steps, r.logins = []string{"log " + subject + " in"}, nil
			r.signIn(ctx, subject, true)
			for _, l := range r.logins {
				r.newIDToken(ctx, l, chosen)
			}
		}
	}
}

// newIDToken checks a login while the provider returns a changed id token for its refresh token.
func (r *sessionsRun) newIDToken(ctx context.Context, l *signedIn, chosen value) {
	p := r.provider
	p.set(func(a *state) {
		a.forge = func(claims map[string]any) any {
			d := p.draft()
			d.claims = claims
			chosen.set(d) // everything else stays the same, above all the subject of the login
			return d.token()
		}
	})
	defer p.set(func(a *state) { a.forge = nil })
	defer r.drop(l)
	from := time.Now()
	r.check(ctx, l, "with the new id token: default values, "+chosen.name, func(d *demand) {
		text := p.idToken("")
		if d.allowed != accept || text == "" {
			d.unsure(accept|refuse|cannotTell, "the provider was not asked", sConfirms)
			return
		}
		made := r.world.exchange(text, "", from, time.Now())
		if sub, _ := made.claims["sub"].(string); sub != l.subject {
			made.refuse(Form, "its new id token is about another subject")
		}
		d.unsure(made.allowed, made.why, sEnds)
		d.judge = func(id auth.Identity) (string, string) {
			if id.Subject != l.subject {
				return fmt.Sprintf("the subject %q", l.subject), sConfirms
			}
			return "", ""
		}
	})
}

// atOnce logs people in, ends the session of one of them and checks all of them concurrently.
func (r *sessionsRun) atOnce(ctx context.Context) {
	const n = 8
	first := len(r.logins)
	for i := range n {
		r.signIn(ctx, fmt.Sprintf("user_%d_%d", len(r.steps), i), true)
	}
	mine := r.logins[first:]
	r.provider.set(func(a *state) {
		for _, g := range a.refresh {
			a.ended[g.session] = a.ended[g.session] || g.subject == mine[3].subject
		}
	})
	kit.AtOnce(ctx, n, n, func(ctx context.Context, i int) {
		for range 2 {
			want := demand{allowed: accept, why: "the provider vouches for it", sentence: sConfirms, judge: func(id auth.Identity) (string, string) {
				if id.Subject != mine[i].subject || id.SessionID != "" && id.SessionID != mine[i].session || id.Email != "" && id.Email != emailOf(mine[i].subject) {
					return fmt.Sprintf("the subject %q and its session", mine[i].subject), sConfirms
				}
				return "", ""
			}}
			if i == 3 {
				want.unsure(refuse, "the provider has ended it", sEnds)
			}
			ctx, cancel := context.WithTimeout(ctx, r.patience())
			id, err := r.adapter.(auth.Sessions).CheckSession(ctx, auth.SessionCheck{Renewal: mine[i].renewal, Subject: mine[i].subject}) //nolint:forcetypeassert // check has tested it
			f := want.check(ctx, id, err)
			cancel()
			if mine[i].renewal = id.Renewal; f != nil || err != nil {
				mine[i].over, mine[i].renewal = true, "a-renewal-that-is-over"
				kit.Must(kit.After(f, append(r.steps, "CheckSession of "+mine[i].subject+" and others at once")...))
				return
			}
		}
	})
}
