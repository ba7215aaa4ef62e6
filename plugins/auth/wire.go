package auth

import (
	"errors"

	"google.golang.org/protobuf/types/known/timestamppb"

	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
)

func toWire(id Identity) *authv1.Identity {
	wire := &authv1.Identity{
		Issuer: id.Issuer, Subject: id.Subject, Email: id.Email, DisplayName: id.DisplayName,
		OrganizationId: id.OrganizationID, OrgRole: id.OrgRole, Scopes: id.Scopes,
	}
	if !id.ExpiresAt.IsZero() {
		wire.ExpiresAt = timestamppb.New(id.ExpiresAt)
	}
	return wire
}

// fromWire refuses what is nobody: without issuer and subject there is no identity.
func fromWire(wire *authv1.Identity) (Identity, error) {
	if wire.GetIssuer() == "" || wire.GetSubject() == "" {
		return Identity{}, errors.New("the auth plugin answered with an identity that has no issuer or no subject")
	}
	id := Identity{
		Issuer: wire.GetIssuer(), Subject: wire.GetSubject(), Email: wire.GetEmail(), DisplayName: wire.GetDisplayName(),
		OrganizationID: wire.GetOrganizationId(), OrgRole: wire.GetOrgRole(), Scopes: wire.GetScopes(),
	}
	if wire.GetExpiresAt() != nil {
		id.ExpiresAt = wire.GetExpiresAt().AsTime()
	}
	return id, nil
}
