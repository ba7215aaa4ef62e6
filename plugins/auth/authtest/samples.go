package authtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
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
//	 "bad": [{"name": "what is wrong with it", "clause": "a bad signature", "token": "…"}],
//	 "revocation": {"token": "…", "kept": "…", "begin": ["command", "…"], "revoke": ["command", "…"]}}
//
// revocation is for an adapter that reports revocations: begin puts two tokens into force, revoke ends token
// and leaves kept. The commands run in the current directory. clause is one of the Clause constants. good, issuer, subject and expiresAt must be there.
func ParseSamples(raw []byte) (_ *Samples, err error) {
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
		Revocation *revocationCommands `json:"revocation"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&text); err != nil {
		return nil, fmt.Errorf("read the samples: %w", err)
	}
	if text.Good == "" || text.Issuer == "" || text.Subject == "" || text.ExpiresAt.IsZero() {
		return nil, errors.New("the samples need good, issuer, subject and expiresAt")
	}
	s := &Samples{Good: text.Good, Audience: text.Audience, Identity: auth.Identity{
		Issuer: text.Issuer, Subject: text.Subject, Email: text.Email, OrganizationID: text.OrganizationID, ExpiresAt: text.ExpiresAt,
	}}
	if text.Revocation != nil {
		if s.Revoking, err = text.Revocation.revoking(); err != nil {
			return nil, err
		}
	}
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

// revocationCommands is how the author of an adapter has a token revoked.
type revocationCommands struct {
	Token  string   `json:"token"`
	Kept   string   `json:"kept"`
	Begin  []string `json:"begin"`
	Revoke []string `json:"revoke"`
}

func (c revocationCommands) revoking() (*Revoking, error) {
	if c.Token == "" || c.Kept == "" || len(c.Begin) == 0 || len(c.Revoke) == 0 {
		return nil, errors.New("revocation of the samples needs token, kept, begin and revoke")
	}
	return &Revoking{Token: c.Token, Kept: c.Kept, Begin: command(c.Begin), Revoke: command(c.Revoke)}, nil
}

// command returns a function that runs a command.
func command(words []string) func(context.Context) error {
	return func(ctx context.Context) error {
		said, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("run %q: %w: %s", words, err, bytes.TrimSpace(said))
		}
		return nil
	}
}
