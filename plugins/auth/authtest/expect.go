package authtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// mustRefuse wants "I know it is bad".
func mustRefuse(id auth.Identity, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("was accepted as %q's; it must be refused as unauthenticated", id.Subject)
	case !errors.Is(err, plugins.ErrUnauthenticated):
		return fmt.Errorf("was answered with %w; it must be refused as unauthenticated", err)
	}
	return nil
}

// mustNotTell requires the answer unavailable.
func mustNotTell(id auth.Identity, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("was accepted as %q's; the answer must be unavailable", id.Subject)
	case errors.Is(err, plugins.ErrUnauthenticated):
		return fmt.Errorf("was refused (%w); the answer must be unavailable, because whether the token is bad is unknown", err)
	case !errors.Is(err, plugins.ErrUnavailable):
		return fmt.Errorf("was answered with %w; the answer must be unavailable", err)
	}
	return nil
}

// mustBe compares what every adapter must know; a name to show is the adapter's to choose. A role is
// nobody's who has none: see mustHaveRole.
func (st *stage) mustBe(got, want auth.Identity) error {
	switch {
	case got.Issuer != want.Issuer || got.Subject != want.Subject:
		return fmt.Errorf("is %q of %q, not %q of %q", got.Subject, got.Issuer, want.Subject, want.Issuer)
	case !got.ExpiresAt.Equal(want.ExpiresAt):
		return fmt.Errorf("expires at %v, not %v", got.ExpiresAt, want.ExpiresAt)
	case got.Email != "" && got.Email != want.Email:
		return fmt.Errorf("has the e-mail address %q, not %q", got.Email, want.Email)
	case got.OrganizationID != want.OrganizationID && (got.OrganizationID != "" || !st.limits.NoOrganization):
		return fmt.Errorf("is of the organization %q, not %q", got.OrganizationID, want.OrganizationID)
	case !slices.Contains([]string{"", "owner", "admin", "member"}, got.OrgRole):
		return fmt.Errorf("has the role %q; it must be owner, admin, member or nothing", got.OrgRole)
	}
	return nil
}
