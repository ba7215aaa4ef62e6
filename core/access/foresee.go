package access

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// Foresee predicts which users the given providers, which must be running, will recognize. It leaves out the
// instance's owner. The error is core.CodeUnavailable if a provider cannot describe itself.
func Foresee(ctx context.Context, users []core.KnownUser, providers []Provider) (core.Forecast, error) {
	f := core.Forecast{New: []core.KnownUser{}}
	issuers := make([]string, len(providers))
	for i, p := range providers {
		about, err := p.Adapter.Describe(ctx)
		if err != nil {
			return f, unavailable(err)
		}
		issuers[i] = about.Issuer
	}
	for _, u := range users {
		switch {
		case u.KnownTo(core.IssuerLocal):
		case u.KnownTo(issuers...):
			f.Known++
		case slices.ContainsFunc(providers, func(p Provider) bool { return isFound(u, users, p.SameAs) }):
			f.Linked++
		default:
			f.New = append(f.New, u)
		}
	}
	return f, nil
}

// isFound reports whether the issuers know the user and no other user with the same email.
func isFound(u core.KnownUser, users []core.KnownUser, issuers []string) bool {
	return u.KnownTo(issuers...) && len(core.UsersWithEmail(users, u.Email, issuers)) == 1
}
