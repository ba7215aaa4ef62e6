package authtest

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// checkLogouts concurrently tries logout tokens that cover pairs of property values, every other one twice. After that
// it tries a key change and outages.
func checkLogouts(ctx context.Context, s Subject) {
	if !s.Rechecks {
		kit.Must(kit.DoesNotApply("the adapter does not declare the capability sessions"))
	}
	s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) {
		p := st.provider
		table := p.logoutTable()
		rows := st.rows("logout tokens", 6, table, func(r row) demand {
			now := time.Now()
			return st.world.logout(r.change(p.logoutDraft(), table).token(), now, now)
		})
		s.trial.Cover("%d logout tokens with %d properties", len(rows), len(table))
		st.logout(ctx, s.patience(), p.logoutDraft().token(), "default values", nil)
		kit.AtOnce(ctx, len(rows), workers, func(ctx context.Context, i int) {
			d := rows[i].change(p.logoutDraft(), table)
			token := d.token()
			for range 1 + i%2 {
				st.logout(ctx, s.patience(), token, "default values"+d.name, nil)
			}
			if i%8 == 0 {
				st.verify(ctx, auth.VerifyRequest{Token: token}, "verify a logout token as a bearer token: default values"+d.name)
			}
		})
		for _, text := range junk() {
			st.logout(ctx, s.patience(), text, "the text "+clip(text, 40), nil)
		}
		p.Rotate()
		kit.Must(st.restart(ctx))
		st.logout(ctx, s.patience(), p.logoutDraft().token(), "default values, after the provider changed its key and the adapter was restarted", nil)
		for i, f := range outages() {
			if f.at != "" || s.trial.Effort == kit.Quick && i%3 != 0 {
				continue
			}
			p.setFault(f)
			kit.Must(st.restart(ctx))
			began := time.Now()
			st.logout(ctx, time.Second, p.logoutDraft().token(), "default values, with an adapter that was started while the provider "+f.name, func(d *demand) { d.unsure(cannotTell, "its key cannot be read", sCannotTell) })
			p.setFault(nil)
			if took := time.Since(began); took > time.Second+s.prompt() {
				kit.Reject("after "+took.String(), "a response soon after the deadline of 1 s", sConcurrent, "VerifyLogout with a deadline of 1 s")
			}
		}
	})
}

// logoutDraft returns a valid logout token.
func (p *Provider) logoutDraft() *draft {
	d := p.draft()
	d.header["typ"], d.claims = "logout+jwt", p.logoutClaims()
	return d
}

// logout verifies one logout token and compares the result with the oracle's.
func (st *stage) logout(ctx context.Context, limit time.Duration, token, name string, adjust func(*demand)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	steps := []string{"VerifyLogout: " + name}
	sessions, ok := st.adapter.(auth.Sessions)
	if !ok {
		kit.Reject("no such method", "VerifyLogout", sSessions, steps...)
	}
	from := time.Now()
	l, err := sessions.VerifyLogout(ctx, token)
	d := st.world.logout(token, from, time.Now())
	if adjust != nil {
		adjust(&d)
	}
	st.given.token("a logout token", token, err)
	f := d.check(ctx, auth.Identity{Issuer: l.Issuer, Subject: l.Subject, SessionID: l.SessionID}, err)
	if kit.Must(kit.After(f, steps...)); err != nil {
		return
	}
	text := func(name string) string { s, _ := d.claims[name].(string); return s }
	exp, _ := seconds(d.claims["exp"])
	answer := fmt.Sprintf("%+v", l)
	switch {
	case l.Issuer != text("iss") || l.Subject != text("sub") || l.SessionID != text("sid"):
		kit.Reject(answer, fmt.Sprintf("the subject %q and the session %q of %q", text("sub"), text("sid"), text("iss")), sEnded, steps...)
	case l.TokenID != text("jti"):
		kit.Reject(answer, fmt.Sprintf("the identifier %q", text("jti")), sLogout, steps...)
	case l.ExpiresAt.Before(exp) || l.ExpiresAt.After(exp.Add(31*time.Second)):
		kit.Reject(answer, fmt.Sprintf("an expiry from %s to 30 s later", exp.UTC()), sLogout, steps...)
	}
}
