package sessionstore

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

func toProto(rec Record) *sessionstorev1.Record {
	return &sessionstorev1.Record{
		Id:              rec.ID,
		Subject:         rec.Subject,
		Issuer:          rec.Issuer,
		WorkspaceId:     rec.WorkspaceID,
		ProtocolVersion: rec.ProtocolVersion,
		ClientInfo:      &sessionstorev1.ClientInfo{Name: rec.ClientInfo.Name, Version: rec.ClientInfo.Version},
		CreatedAt:       timeToProto(rec.CreatedAt),
		LastAccessedAt:  timeToProto(rec.LastAccessedAt),
		Owner:           rec.Owner,
		State:           rec.State,
	}
}

func fromProto(rec *sessionstorev1.Record) Record {
	return Record{
		ID:              rec.GetId(),
		Subject:         rec.GetSubject(),
		Issuer:          rec.GetIssuer(),
		WorkspaceID:     rec.GetWorkspaceId(),
		ProtocolVersion: rec.GetProtocolVersion(),
		ClientInfo:      ClientInfo{Name: rec.GetClientInfo().GetName(), Version: rec.GetClientInfo().GetVersion()},
		CreatedAt:       timeFromProto(rec.GetCreatedAt()),
		LastAccessedAt:  timeFromProto(rec.GetLastAccessedAt()),
		Owner:           rec.GetOwner(),
		State:           rec.GetState(),
	}
}

// timeToProto converts a time. The zero time is absent on the wire.
func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeFromProto(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
