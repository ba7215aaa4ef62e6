package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// answers is the set of answers that the contract allows.
type answers uint8

const (
	accept answers = 1 << iota
	refuse
	cannotTell
)

// String returns the gRPC status names, as reports show them.
func (a answers) String() string {
	var names []string
	for bit, name := range map[answers]string{accept: "OK", refuse: "UNAUTHENTICATED", cannotTell: "UNAVAILABLE"} {
		if a&bit != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// demand is what the contract requires of one call.
type demand struct {
	allowed  answers
	why      string // the reason, for reports
	sentence string // the sentence of the contract that requires it
	clause   Clause // the clause that requires a rejection; "" if none is required
	claims   map[string]any
	signer   *signer                                               // the key that made the signature
	judge    func(auth.Identity) (problem string, sentence string) // checks the identity; nil if any identity will do
}

func refused(clause Clause, why string) demand {
	return demand{allowed: refuse, why: why, sentence: clause.sentence(), clause: clause}
}

// refuse requires a rejection. Only the first reason is kept.
func (d *demand) refuse(clause Clause, why string) {
	if d.clause == "" {
		d.allowed, d.clause, d.why, d.sentence = refuse, clause, why, clause.sentence()
	}
}

// mayRefuse also allows a rejection, for cases that the contract leaves open.
func (d *demand) mayRefuse(why string) {
	if d.clause == "" && d.allowed&accept != 0 {
		d.allowed, d.why = d.allowed|refuse, why
	}
}

// unsure replaces the allowed answers, for cases in which the adapter cannot know everything.
func (d *demand) unsure(allowed answers, why, sentence string) {
	d.allowed, d.why, d.sentence = allowed, why, sentence
}

// answered classifies the result of a call. It returns 0 for an error that is not one of the three answers.
func answered(ctx context.Context, err error) answers {
	switch {
	case err == nil:
		return accept
	case errors.Is(err, plugins.ErrUnauthenticated):
		return refuse
	case errors.Is(err, plugins.ErrNotFound): // there is no provider; it is not just unavailable
		return 0
	case errors.Is(err, plugins.ErrUnavailable), ctx.Err() != nil: // after the deadline, any error that is not a verdict will do
		return cannotTell
	}
	return 0
}

// check compares the result of a call with the demand. It returns nil if the result is allowed.
func (d *demand) check(ctx context.Context, id auth.Identity, err error) error {
	if answered(ctx, err)&d.allowed == 0 {
		return kit.NewFailure(said(id, err), fmt.Sprintf("%s: %s", d.allowed, d.why), d.sentence)
	}
	if err != nil || d.judge == nil {
		return nil
	}
	if problem, sentence := d.judge(id); problem != "" {
		return kit.NewFailure(said(id, err), problem, sentence)
	}
	return nil
}

// said formats a result for a report.
func said(id auth.Identity, err error) string {
	if err != nil {
		return clip(kit.ErrorText(err), 200)
	}
	return clip(fmt.Sprintf("OK: subject %q of %q, organization %q, role %q, e-mail address %q, scopes %q, until %s", id.Subject, id.Issuer, id.OrganizationID, id.OrgRole, id.Email, id.Scopes, id.ExpiresAt.UTC()), 600)
}

func clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// judgeIdentity compares an identity with the claims of its token. problem is "" if they match.
func (w *world) judgeIdentity(claims map[string]any, id auth.Identity) (problem, sentence string) {
	text := func(name string) string { s, _ := claims[name].(string); return s }
	missing := func(name string) bool { _, set := claims[name]; return w.loose && !set }
	exp, _ := seconds(claims["exp"])
	organizations, _ := texts(claims[organizationClaim])
	organizations = append(organizations, "")
	if one, ok := claims[organizationClaim].(string); ok && one != "" && !w.limits.NoOrganization {
		organizations = []string{one}
	}
	switch {
	case id.Issuer != w.issuer:
		return fmt.Sprintf("the issuer %q", w.issuer), sPerson
	case id.Subject != text("sub"):
		return fmt.Sprintf("the subject %q", text("sub")), sOwn
	case id.ExpiresAt.Before(exp) || id.ExpiresAt.Sub(exp).Seconds() >= 1:
		return "the expiry " + exp.UTC().String(), sExpires
	case id.Email != "" && id.Email != text("email") && !missing("email"):
		return fmt.Sprintf("the e-mail address %q, or none", text("email")), sEmail
	case id.Email != "" && !w.loose && claims["email_verified"] != true && claims["email_verified"] != "true":
		return "no e-mail address: the provider does not say that it is verified", sVouches
	case !slices.Contains(organizations, id.OrganizationID) && !missing(organizationClaim):
		return fmt.Sprintf("the organization %q", strings.Join(organizations, ", ")), sOwn
	case id.SessionID != "" && !w.loose && !anyText(about(claims, "sid", "session"), id.SessionID):
		return "a session that the token names, or none", sSession
	}
	for _, scope := range id.Scopes {
		if strings.Contains(scope, " ") || !missing("scope") && !anyText(claims["scope"], scope) && !anyText(claims["scp"], scope) {
			return fmt.Sprintf("no scope %q: the token does not grant it", scope), sScopes
		}
	}
	for _, group := range id.Groups {
		if !w.loose && !anyText(about(claims, "group", "role", "team", "member", "permission"), group) {
			return fmt.Sprintf("no group %q: the token does not name it", group), sGroups
		}
	}
	for word := range strings.FieldsSeq(strings.ToLower(id.DisplayName)) {
		if !missing("name") && !strings.Contains(strings.ToLower(string(must(json.Marshal(claims)))), word) {
			return "a name from the token, or none", sOwn
		}
	}
	if id.Groups != nil && !w.loose && !namesGroups(claims, id.Groups) {
		return "all groups of a claim, or none: the token names no others", sNamesGroups
	}
	if problem := w.judgeRole(claims, id.OrgRole); problem != "" && !missing(RoleClaim) {
		return problem, sRole
	}
	if len(id.Claims) > 0 && !w.loose {
		have := readObject(id.Claims)
		if have == nil {
			return "claims that are one JSON object", sClaims
		}
		for name, value := range have {
			if !reflect.DeepEqual(value, claims[name]) {
				return fmt.Sprintf("the claim %q with the value %v, as in the token, or no such claim", name, claims[name]), sClaims
			}
		}
	}
	return "", ""
}

// namesGroups reports whether the groups include all groups of some claim.
func namesGroups(claims map[string]any, groups []string) bool {
	for _, value := range about(claims, "group", "role", "team", "member", "permission") {
		named, mixed := texts(value)
		_, list := value.([]any)
		if (list && !mixed || len(named) > 0) && !slices.ContainsFunc(named, func(group string) bool { return !slices.Contains(groups, group) }) {
			return true
		}
		if _, nested := value.(map[string]any); nested {
			return true
		}
	}
	return false
}

// about returns the claims whose names contain one of the words.
func about(claims map[string]any, words ...string) map[string]any {
	some := maps.Clone(claims)
	maps.DeleteFunc(some, func(name string, _ any) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(name), word) })
	})
	return some
}

// judgeRole compares a role with the claims of the token. If the settings do not name the role claim, the adapter may
// choose one.
func (w *world) judgeRole(claims map[string]any, got string) string {
	ranks := []string{"", "member", "admin", "owner"}
	rank := slices.Index(ranks, got)
	if rank < 0 {
		return `the role "owner", "admin" or "member", or none`
	}
	highest := 1
	for at, name := range ranks[1:] {
		held, _ := texts(claims[w.roleClaim])
		if w.limits.NoRoles && anyText(claims, name) || w.roleClaim != "" && slices.ContainsFunc(held, func(s string) bool { return strings.EqualFold(s, name) }) {
			highest = at + 1
		}
	}
	exact, single := claims[w.roleClaim].(string)
	switch {
	case rank > highest:
		return fmt.Sprintf("no higher role than %q", ranks[highest])
	case w.roleClaim != "" && !w.limits.NoRoles && single && slices.Index(ranks, exact) > 1 && got != exact:
		return fmt.Sprintf("the role %q", exact)
	}
	return ""
}
