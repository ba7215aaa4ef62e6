package auth

import (
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ropewalk/ropewalk/plugins"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
)

func toProto(id Identity) *authv1.Identity {
	message := &authv1.Identity{
		Issuer: id.Issuer, Subject: id.Subject, Email: id.Email, DisplayName: id.DisplayName,
		OrganizationId: id.OrganizationID, OrgRole: id.OrgRole, Scopes: id.Scopes,
		Groups: id.Groups, GroupsNamed: id.Groups != nil, ClaimsJson: string(id.Claims), SessionId: id.SessionID, Renewal: id.Renewal.Reveal(),
	}
	if !id.ExpiresAt.IsZero() {
		message.ExpiresAt = timestamppb.New(id.ExpiresAt)
	}
	return message
}

// fromProto rejects an identity without an issuer or a subject.
func fromProto(message *authv1.Identity) (Identity, error) {
	if message.GetIssuer() == "" || message.GetSubject() == "" {
		return Identity{}, errors.New("the auth plugin returned an identity that has no issuer or no subject")
	}
	id := Identity{
		Issuer: message.GetIssuer(), Subject: message.GetSubject(), Email: message.GetEmail(), DisplayName: message.GetDisplayName(),
		OrganizationID: message.GetOrganizationId(), OrgRole: message.GetOrgRole(), Scopes: message.GetScopes(),
		Groups: message.GetGroups(), SessionID: message.GetSessionId(), Renewal: plugins.Secret(message.GetRenewal()),
	}
	if id.Groups == nil && message.GetGroupsNamed() {
		id.Groups = []string{}
	}
	if claims := json.RawMessage(message.GetClaimsJson()); json.Valid(claims) {
		id.Claims = claims
	}
	if message.GetExpiresAt() != nil {
		id.ExpiresAt = message.GetExpiresAt().AsTime()
	}
	return id, nil
}
