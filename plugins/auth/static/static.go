package static

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Settings are the adapter's settings.
type Settings struct {
	// File is the absolute path of the token file, YAML or JSON.
	File string `json:"file"`
	// Issuer is the issuer of the subjects in the file; the default is "ropewalk:static".
	Issuer string `json:"issuer"`
	// OrganizationID admits only tokens of that organization.
	OrganizationID string `json:"organizationId"`
}

func defaults() Settings { return Settings{Issuer: "ropewalk:static"} }

// Check enforces the rules that types do not express.
func (s *Settings) Check(problems *plugins.ConfigError) {
	if !filepath.IsAbs(s.File) {
		problems.Add("file", "must be the absolute path of a token file")
	}
	if s.Issuer == "" {
		problems.Add("issuer", "must not be empty; leave it out for ropewalk:static")
	}
}

// Adapter knows the tokens in one file. It is ready for calls once it is configured.
type Adapter struct {
	log      hclog.Logger
	settings Settings
	file     *file
}

// New returns an Adapter that must be configured before use.
func New() *Adapter { return &Adapter{log: hclog.NewNullLogger()} }

// Name returns "static", the adapter's name in the auth.adapter setting.
func (*Adapter) Name() string { return "static" }

// UseLogger sets the adapter's logger.
func (a *Adapter) UseLogger(log hclog.Logger) { a.log = log }

// Validate checks settings, including the token file, without applying them.
func (a *Adapter) Validate(_ context.Context, c plugins.Config) error {
	_, _, err := a.open(c)
	return err
}

// Configure applies the settings and reads the file.
func (a *Adapter) Configure(_ context.Context, c plugins.Config) (err error) {
	a.settings, a.file, err = a.open(c)
	return err
}

func (a *Adapter) open(c plugins.Config) (Settings, *file, error) {
	settings := defaults()
	if err := c.Decode(&settings); err != nil {
		return settings, nil, err
	}
	f := &file{path: settings.File, log: a.log}
	if err := f.load(); err != nil {
		problems := &plugins.ConfigError{}
		problems.Add("file", "%v", err)
		return settings, nil, problems
	}
	return settings, f, nil
}

// Describe implements auth.Adapter. It names no authorization server, because there is none.
func (a *Adapter) Describe(context.Context) (auth.Description, error) {
	return auth.Description{Issuer: a.settings.Issuer}, nil
}

// Verify implements auth.Adapter. A token whose entry names no audiences was written for this server, so it is
// valid for each of its audiences.
func (a *Adapter) Verify(_ context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	entries, err := a.file.current()
	if err != nil {
		return auth.Identity{}, err
	}
	found, ok := entries.find(req.Token)
	switch {
	case !ok:
		return auth.Identity{}, refuse("the token is not in the file")
	case !time.Now().Before(found.expires):
		return auth.Identity{}, refuse("the token has expired")
	case a.settings.OrganizationID != "" && found.Organization != a.settings.OrganizationID:
		return auth.Identity{}, refuse("the token belongs to another organization")
	case len(req.Audiences) > 0 && len(found.Audiences) > 0 && !slices.ContainsFunc(found.Audiences, func(aud string) bool {
		return slices.Contains(req.Audiences, aud)
	}):
		return auth.Identity{}, refuse("the token is for another audience")
	}
	return auth.Identity{
		Issuer: a.settings.Issuer, Subject: found.Subject, Email: found.Email, DisplayName: found.Name,
		OrganizationID: found.Organization, OrgRole: found.OrgRole, Scopes: slices.Clone(found.Scopes), ExpiresAt: found.expires,
	}, nil
}

// Metadata implements auth.Adapter. It always returns plugins.ErrNotFound, because there is no provider.
func (*Adapter) Metadata(context.Context) (json.RawMessage, error) {
	return nil, fmt.Errorf("%w: tokens from a file have no authorization server", plugins.ErrNotFound)
}

func refuse(reason string) error {
	return fmt.Errorf("%w: %s", plugins.ErrUnauthenticated, reason)
}
