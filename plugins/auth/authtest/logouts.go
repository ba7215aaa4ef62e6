package authtest

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// logoutsHold concurrently tries logout tokens that cover pairs of property values, every other one twice. After that
// it tries a key change and outages.
func logoutsHold(ctx context.Context, trial *kit.Trial, s Subject) error {
	if !s.Rechecks {
		return kit.DoesNotApply("the adapter does not declare the capability sessions")
	}
	return s.staged(ctx, []Setup{AnyOrganization, OneOrganization}, func(st *stage) error {
		p := st.provider
		table := p.logoutTable()
		bad := func(at, v int) bool {
			choice := make(row, len(table))
			choice[at] = v
			now := time.Now()
			demand := st.world.logout(choice.change(p.logoutDraft(), table).token(), now, now)
			return demand.clause != ""
		}
		most := map[kit.Effort]int{kit.Quick: 1, kit.Normal: 6, kit.Deep: 60}[trial.Effort]
		rows := s.Keys.chosen(fmt.Sprint("logout tokens", most, trial.Seed, st.world.algorithms), func() []row { return pairs(table, bad, most, trial.Rand(-2)) })
		trial.Cover("%d logout tokens of %d properties", len(rows), len(table))
		if err := st.logout(ctx, patience(trial), p.logoutDraft().token(), "everything usual", nil); err != nil {
			return err
		}
		err := kit.AtOnce(ctx, len(rows), workers, func(ctx context.Context, i int) error {
			d := rows[i].change(p.logoutDraft(), table)
			token := d.token()
			for range 1 + i%2 {
				if err := st.logout(ctx, patience(trial), token, "everything usual"+d.name, nil); err != nil {
					return err
				}
			}
			if i%8 != 0 {
				return nil
			}
			req := auth.VerifyRequest{Token: token}
			return history(st.call(ctx, patience(trial), req, nil), "verify a logout token as a bearer token: everything usual"+d.name)
		})
		for _, text := range junk() {
			if err == nil {
				err = st.logout(ctx, patience(trial), text, "the text "+clip(text, 40), nil)
			}
		}
		if err != nil {
			return err
		}
		p.Rotate()
		if err := st.restart(ctx); err != nil {
			return err
		}
		if err := st.logout(ctx, patience(trial), p.logoutDraft().token(), "everything usual, after the provider has changed its key and the adapter was started again", nil); err != nil {
			return err
		}
		for i, f := range outages() {
			if f.at != "" || trial.Effort == kit.Quick && i%3 != 0 {
				continue
			}
			p.setFault(f)
			if err := st.restart(ctx); err != nil {
				return err
			}
			began := time.Now()
			err := st.logout(ctx, time.Second, p.logoutDraft().token(), "everything usual, in an adapter that was started while the provider "+f.name, func(d *demand) { d.unsure(cannotTell, "its key cannot be read", sCannotTell) })
			p.setFault(nil)
			if took := time.Since(began); err == nil && took > time.Second+prompt {
				err = history(&kit.Failure{Answered: "after " + took.String(), Demanded: "an answer soon after the deadline of 1 s", Sentence: sConcurrent}, "VerifyLogout with a deadline of 1 s")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// logoutDraft returns a good logout token.
func (p *Provider) logoutDraft() *draft {
	d := p.draft()
	d.header["typ"], d.claims = "logout+jwt", p.logoutClaims()
	return d
}

// logout verifies one logout token and compares the result with the oracle's.
func (st *stage) logout(ctx context.Context, limit time.Duration, token, name string, adjust func(*demand)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	steps := []string{"VerifyLogout: " + name}
	sessions, ok := st.adapter.(auth.Sessions)
	if !ok {
		return history(&kit.Failure{Answered: "no such method", Demanded: "VerifyLogout", Sentence: sSessions}, steps...)
	}
	from := time.Now()
	l, err := sessions.VerifyLogout(ctx, token)
	d := st.world.logout(token, from, time.Now())
	if adjust != nil {
		adjust(&d)
	}
	st.given.token("a logout token", token, err)
	if f := d.check(ctx, auth.Identity{Issuer: l.Issuer, Subject: l.Subject, SessionID: l.SessionID}, err); f != nil || err != nil {
		return history(f, steps...)
	}
	text := func(name string) string { s, _ := d.claims[name].(string); return s }
	exp, _ := seconds(d.claims["exp"])
	answer := fmt.Sprintf("%+v", l)
	switch {
	case l.Issuer != text("iss") || l.Subject != text("sub") || l.SessionID != text("sid"):
		return history(&kit.Failure{Answered: answer, Demanded: fmt.Sprintf("the subject %q and the session %q of %q", text("sub"), text("sid"), text("iss")), Sentence: sEnded}, steps...)
	case l.TokenID != text("jti"):
		return history(&kit.Failure{Answered: answer, Demanded: fmt.Sprintf("the identifier %q", text("jti")), Sentence: sLogout}, steps...)
	case l.ExpiresAt.Before(exp) || l.ExpiresAt.After(exp.Add(31*time.Second)):
		return history(&kit.Failure{Answered: answer, Demanded: fmt.Sprintf("an expiry from %s to 30 s later", exp.UTC()), Sentence: sLogout}, steps...)
	}
	return nil
}
