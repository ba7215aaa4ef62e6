package authtest

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// The names of the properties.
const (
	Verdicts      = "every verdict on a token is the one that the contract requires"
	Crowds        = "each identity is the token's own, for many people at once"
	Clocks        = "a token is good until it expires, and no longer"
	Outages       = "keys and verdicts are right whatever the provider does"
	Stalls        = "each call has its own deadline, even when many wait for the same answer from the provider"
	Documents     = "the description and the metadata are right whatever the provider does"
	Introspection = "a token that the provider no longer vouches for is refused"
	Logins        = "a login identifies the person who logged in, whatever else happens"
	Renewals      = "a login continues as long as the provider vouches for it"
	Logouts       = "a logout token ends what it names"
	Proofs        = "a bound token is accepted only from its holder"
	Revocations   = "revocations are reported, and nothing else"
	Undeclared    = "undeclared capabilities are not served"
)

// Properties returns what the contract requires of an auth adapter.
func Properties() (all []kit.Property[Subject]) {
	contract := kit.Contract("auth")
	for _, p := range []struct {
		name string
		try  try
	}{
		{Verdicts, verdicts}, {Crowds, crowds}, {Clocks, clocks}, {Outages, ofProviders(checkOutages)}, {Stalls, ofProviders(checkStalls)}, {Documents, checkDocuments}, {Introspection, ofProviders(checkIntrospection)},
		{Logins, ofLogins(checkLogins)}, {Renewals, ofLogins(checkRenewals)}, {Logouts, ofLogins(checkLogouts)}, {Proofs, checkProofs}, {Revocations, checkRevocations}, {Undeclared, undeclared},
	} {
		all = append(all, kit.Property[Subject]{Name: p.name, Sentences: contract, Try: func(ctx context.Context, trial *kit.Trial, s Subject) {
			s.trial = trial
			p.try(ctx, s)
		}})
	}
	return all
}

type try func(ctx context.Context, s Subject)

// ofProviders limits a property to adapters for OpenID providers.
func ofProviders(check try) try {
	return func(ctx context.Context, s Subject) {
		if s.Keys == nil {
			kit.Must(kit.DoesNotApply("it applies only to adapters for OpenID providers"))
		}
		check(ctx, s)
	}
}

// ofLogins limits a property to adapters that can log people in.
func ofLogins(check try) try {
	return func(ctx context.Context, s Subject) {
		switch {
		case !s.Logins:
			kit.Must(kit.DoesNotApply("the adapter does not declare the capability login"))
		case s.Keys == nil:
			kit.Must(kit.CannotJudge("logins are tried only with adapters for OpenID providers: put ${issuer} and ${clientId} in the settings"))
		case s.Limits.NoClient:
			kit.Must(kit.CannotJudge("put ${clientId} in place of the client id in the settings; logins return to %s", RedirectURI))
		}
		check(ctx, s)
	}
}

// setups returns those of the wanted setups that the settings allow.
func (s Subject) setups(wanted ...Setup) (allowed []Setup) {
	for _, setup := range wanted {
		if s.lacks(setup) == nil {
			allowed = append(allowed, setup)
		}
	}
	return allowed
}

// staged runs a history on a stage in the first setup that the settings and the adapter allow, and closes the stage.
func (s Subject) staged(ctx context.Context, setups []Setup, history func(*stage)) {
	why := s.lacks(setups[0])
	for _, setup := range s.setups(setups...) {
		st, err := s.open(ctx, setup, nil)
		if none, ok := errors.AsType[noSetting](err); ok {
			why = kit.DoesNotApply("%s", none)
			continue
		}
		kit.Must(err)
		st.play(func() { history(st) })
		return
	}
	kit.Must(why)
}

// undeclared finds capabilities that the plugin serves but does not declare, or declares but does not serve.
func undeclared(ctx context.Context, s Subject) {
	s.staged(ctx, []Setup{OneOrganization, AnyOrganization}, func(st *stage) {
		ctx, cancel := context.WithTimeout(ctx, s.patience())
		defer cancel()
		d := kit.Got(st.adapter.Describe(ctx))
		unimplemented := func(step string, err error, sentence string) {
			if !errors.Is(err, plugins.ErrUnimplemented) {
				kit.Reject(describeResult(auth.Identity{}, err), "UNIMPLEMENTED", sentence, step)
			}
		}
		login, hasLogin := st.adapter.(auth.Login)
		switch {
		case d.Login && (!hasLogin || !s.Logins):
			kit.Reject("login: true", "the capability login, and LoginService", sHasLogin, "Describe")
		case d.Login:
			if address, err := login.AuthorizeURL(ctx, newAttempt().request()); err != nil {
				kit.Reject(describeResult(auth.Identity{}, err), "the URL of a login page, because Describe reports a login", sHasLogin, "AuthorizeUrl "+address)
			}
		case hasLogin:
			if address, err := login.AuthorizeURL(ctx, newAttempt().request()); err == nil {
				kit.Reject(address, "an error, because Describe reports no login", sHasLogin, "AuthorizeUrl")
			}
		}
		if revoker, ok := st.adapter.(auth.Revoker); ok && !s.Revokes {
			short, cancel := context.WithTimeout(ctx, stillOpen)
			defer cancel()
			unimplemented("Watch", revoker.Watch(short, func(auth.Revocation) error { return nil }), sRevokes)
		}
		if sessions, ok := st.adapter.(auth.Sessions); ok && !s.Rechecks {
			_, err := sessions.VerifyLogout(ctx, "undefined")
			unimplemented("VerifyLogout", err, sSessions)
			_, err = sessions.CheckSession(ctx, auth.SessionCheck{Renewal: "undefined", Subject: "nobody"})
			unimplemented("CheckSession", err, sSessions)
		}
	})
}
