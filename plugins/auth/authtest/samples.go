package authtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Samples are tokens for an adapter that is not for OpenID providers, and ways to get more of them.
type Samples struct {
	Issuer string
	Good   []Sample  // tokens that it must accept, for at least two people
	Bad    []Forgery // tokens that it must reject
	Lacks  []Clause  // reasons for rejection that do not exist for its tokens
	// Issue creates the requested tokens, with "" for each one that cannot be created. It is nil if the author has no
	// way to create tokens.
	Issue    func(ctx context.Context, wishes []Wish) ([]string, error)
	Revoking *Revoking // a token that can be revoked; nil if there is none

	issued sync.Map // the Wish, by token
}

// Sample is a valid token with its expected identity, as the claims of a JWT. A missing claim is not compared.
type Sample struct {
	Token  string
	Claims map[string]any
}

// Forgery is a token that must be rejected.
type Forgery struct {
	Name   string // what is wrong with it
	Clause Clause
	Token  string
}

// Wish describes a token that the kit asks to have issued. An empty field means none, or that any value will do.
type Wish struct {
	Subject        string    `json:"subject"`
	Email          string    `json:"email,omitempty"`
	Name           string    `json:"name,omitempty"`
	OrganizationID string    `json:"organizationId,omitempty"`
	OrgRole        string    `json:"orgRole,omitempty"`
	Scopes         []string  `json:"scopes,omitempty"`
	Audiences      []string  `json:"audiences,omitempty"`
	ExpiresAt      time.Time `json:"expiresAt"`
	NotBefore      time.Time `json:"notBefore,omitzero"`
	Spoil          Clause    `json:"spoil,omitempty"` // what must be wrong with it
}

// claims returns the claims of a JWT that fulfills the wish.
func (w Wish) claims() map[string]any {
	number := func(at time.Time) json.Number { return json.Number(strconv.FormatInt(at.Unix(), 10)) }
	all := map[string]any{"sub": w.Subject, "exp": number(w.ExpiresAt)}
	for name, text := range map[string]string{"email": w.Email, "name": w.Name, organizationClaim: w.OrganizationID, RoleClaim: w.OrgRole, "scope": strings.Join(w.Scopes, " ")} {
		if text != "" {
			all[name] = text
		}
	}
	if len(w.Audiences) > 0 {
		list := []any{}
		for _, aud := range w.Audiences {
			list = append(list, aud)
		}
		all["aud"] = list
	}
	if !w.NotBefore.IsZero() {
		all["nbf"] = number(w.NotBefore)
	}
	return all
}

// ParseSamples parses the samples of an adapter that is not for OpenID providers. docs/plugins.md describes the format.
// The commands in them run in the current directory.
func ParseSamples(raw []byte) (*Samples, error) {
	type sample struct {
		Wish
		Token    string `json:"token"`
		Audience string `json:"audience"`
	}
	var text struct {
		sample
		Good       string              `json:"good"`
		Issuer     string              `json:"issuer"`
		People     []sample            `json:"people"`
		Bad        []Forgery           `json:"bad"`
		Lacks      []Clause            `json:"lacks"`
		Issue      []string            `json:"issue"`
		Revocation *revocationCommands `json:"revocation"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&text); err != nil {
		return nil, fmt.Errorf("read the samples: %w", err)
	}
	s := &Samples{Issuer: text.Issuer, Bad: text.Bad, Lacks: text.Lacks}
	text.Token = text.Good
	for i, one := range append([]sample{text.sample}, text.People...) {
		if one.Token == "" || one.Subject == "" || one.ExpiresAt.IsZero() || text.Issuer == "" {
			return nil, fmt.Errorf("the samples need good, issuer, subject and expiresAt, and each of people needs token, subject and expiresAt (sample %d)", i)
		}
		if one.Audience != "" {
			one.Audiences = append(one.Audiences, one.Audience)
		}
		s.Good = append(s.Good, Sample{one.Token, one.claims()})
	}
	for i, bad := range text.Bad {
		if !slices.Contains(clauses(), bad.Clause) {
			return nil, fmt.Errorf("bad[%d].clause in the samples is %q; it must be one of %q", i, bad.Clause, clauses())
		}
	}
	if len(text.Issue) > 0 {
		s.Issue = issuing(text.Issue)
	}
	if c := text.Revocation; c != nil {
		if c.Token == "" || c.Kept == "" || len(c.Begin) == 0 || len(c.Revoke) == 0 {
			return nil, errors.New("revocation in the samples needs token, kept, begin and revoke")
		}
		s.Revoking = &Revoking{Token: c.Token, Kept: c.Kept, Begin: command(c.Begin), Revoke: command(c.Revoke)}
	}
	return s, nil
}

// WithSamples returns the subject for an adapter that is already configured and is not for OpenID providers, with
// samples in the format of ParseSamples.
func WithSamples(adapter auth.Adapter, samples []byte) (Subject, error) {
	parsed, err := ParseSamples(samples)
	open := func(context.Context, *Provider) (auth.Adapter, func(), error) { return adapter, func() {}, nil }
	return Subject{Open: open, Samples: parsed}, err
}

// revocationCommands is how the adapter's author lets the kit revoke a token.
type revocationCommands struct {
	Token  string   `json:"token"`
	Kept   string   `json:"kept"`
	Begin  []string `json:"begin"`
	Revoke []string `json:"revoke"`
}

func command(words []string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := run(ctx, words, nil)
		return err
	}
}

func run(ctx context.Context, words []string, input []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run %q: %w: %s", words, err, bytes.TrimSpace(problems.Bytes()))
	}
	return out.Bytes(), nil
}

// issuing returns a function that gets tokens from a command. The command gets {"tokens": [wish, …]} on standard input
// and prints {"tokens": ["…", null]}.
func issuing(words []string) func(context.Context, []Wish) ([]string, error) {
	return func(ctx context.Context, wishes []Wish) ([]string, error) {
		out, err := run(ctx, words, must(json.Marshal(map[string]any{"tokens": wishes})))
		if err != nil {
			return nil, err
		}
		var answer struct {
			Tokens []*string `json:"tokens"`
		}
		if err := json.Unmarshal(out, &answer); err != nil || len(answer.Tokens) != len(wishes) {
			return nil, fmt.Errorf("run %q: it must print {\"tokens\": [a text or null for each of the %d wishes]}: %w", words, len(wishes), errors.Join(err))
		}
		tokens := make([]string, len(wishes))
		for i, token := range answer.Tokens {
			if token != nil {
				tokens[i] = *token
			}
		}
		return tokens, nil
	}
}

// issue has the author's command create tokens, and records them for the oracle.
func (s *Samples) issue(ctx context.Context, wishes []Wish) []string {
	tokens, err := s.Issue(ctx, wishes)
	if err != nil {
		kit.Must(kit.CannotJudge("the issue command in the samples failed: %v", err))
	}
	for i, token := range tokens {
		if token != "" {
			s.issued.Store(token, wishes[i])
		}
	}
	return tokens
}

// wish returns the wish that a token was issued for.
func (s *Samples) wish(token string) (Wish, bool) {
	issued, _ := s.issued.Load(token)
	wish, ok := issued.(Wish)
	return wish, ok
}

// judge is the oracle: a token is valid if it is one of the valid samples, or was issued as a valid token.
func (s *Samples) judge(w *world, req auth.VerifyRequest, from, to time.Time) demand {
	var claims map[string]any
	if s != nil {
		for _, bad := range s.Bad {
			if bad.Token == req.Token {
				return refused(bad.Clause, "it is the sample "+bad.Name)
			}
		}
		for _, good := range s.Good {
			if good.Token == req.Token {
				claims = good.Claims
			}
		}
		wish, ok := s.wish(req.Token)
		if ok && wish.Spoil != "" {
			return refused(wish.Spoil, "it was issued with "+string(wish.Spoil))
		}
		if ok {
			claims = wish.claims()
			claims[RoleClaim] = wish.OrgRole // "" means that there must be no role
		}
	}
	if claims == nil {
		d := refused(Form, "nobody was given this token")
		d.sentence = sDiffers
		return d
	}
	return w.judgeClaims(changed(claims, map[string]any{"iss": w.issuer}), req.Audiences, from, to)
}
