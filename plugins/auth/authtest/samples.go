package authtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// SettingsFor are the settings that text describes, for p: "${issuer}" in it stands for the issuer
// of p. No text at all stands for Settings(p). It reports whether the settings are about p, and
// with that whether the adapter is one of OpenID providers.
func SettingsFor(text string, p *Provider) (settings string, aboutProvider bool) {
	const issuer = "${issuer}"
	if strings.TrimSpace(text) == "" {
		return Settings(p), true
	}
	organization, role := "", ""
	switch p.Setup {
	case OneOrganization:
		organization = Organization
	case WithRoles:
		role = RoleClaim
	case AnyOrganization:
	}
	replaced := strings.NewReplacer(issuer, p.Issuer(), organizationPlaceholder, organization, rolePlaceholder, role).Replace(text)
	return replaced, strings.Contains(text, issuer)
}

// ParseSamples reads the samples of an adapter of another kind than OpenID's:
//
//	{"good": "a token", "issuer": "…", "subject": "…", "email": "…", "organizationId": "…",
//	 "expiresAt": "2027-01-31T00:00:00Z", "audience": "…",
//	 "bad": [{"name": "what is wrong with it", "clause": "a bad signature", "token": "…"}]}
//
// clause is one of the Clause constants. good, issuer, subject and expiresAt must be there.
func ParseSamples(raw []byte) (*Samples, error) {
	var text struct {
		Good           string    `json:"good"`
		Issuer         string    `json:"issuer"`
		Subject        string    `json:"subject"`
		Email          string    `json:"email"`
		OrganizationID string    `json:"organizationId"`
		ExpiresAt      time.Time `json:"expiresAt"`
		Audience       string    `json:"audience"`
		Bad            []struct {
			Name   string `json:"name"`
			Clause Clause `json:"clause"`
			Token  string `json:"token"`
		} `json:"bad"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&text); err != nil {
		return nil, fmt.Errorf("read the samples: %w", err)
	}
	if text.Good == "" || text.Issuer == "" || text.Subject == "" || text.ExpiresAt.IsZero() {
		return nil, errors.New("the samples need good, issuer, subject and expiresAt")
	}
	s := &Samples{Good: text.Good, Audience: text.Audience, Identity: auth.Identity{
		Issuer: text.Issuer, Subject: text.Subject, Email: text.Email, OrganizationID: text.OrganizationID, ExpiresAt: text.ExpiresAt,
	}}
	for i, bad := range text.Bad {
		if !bad.Clause.known() {
			return nil, fmt.Errorf("bad[%d].clause of the samples is %q; it must be one of %q", i, bad.Clause, clauses())
		}
		s.Bad = append(s.Bad, Forgery{Name: bad.Name, Clause: bad.Clause, Token: bad.Token})
	}
	return s, nil
}

// WithSamples is the subject of an adapter that is set up already and of another kind than OpenID's,
// with samples as ParseSamples reads them.
func WithSamples(adapter auth.Adapter, samples []byte) (Subject, error) {
	parsed, err := ParseSamples(samples)
	open := func(context.Context, *Provider) (auth.Adapter, func(), error) { return adapter, func() {}, nil }
	return Subject{Open: open, Samples: parsed}, err
}
