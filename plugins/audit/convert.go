package audit

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	auditv1 "github.com/ropewalk/ropewalk/proto/ropewalk/audit/v1"
)

func toProto(records []Record) []*auditv1.Record {
	all := make([]*auditv1.Record, len(records))
	for i, r := range records {
		all[i] = &auditv1.Record{
			Sequence: r.Sequence, Time: timeToProto(r.Time), Actor: r.Actor, Address: r.Address, Workspace: r.Workspace, Action: r.Action,
			Target: r.Target, Outcome: r.Outcome, Reason: r.Reason, RequestId: r.RequestID, TraceId: r.TraceID, DurationMs: r.Duration, ArgumentsJson: string(r.Arguments),
		}
	}
	return all
}

func fromProto(records []*auditv1.Record) []Record {
	all := make([]Record, len(records))
	for i, r := range records {
		all[i] = Record{
			Sequence: r.GetSequence(), Time: timeFromProto(r.GetTime()), Actor: r.GetActor(), Address: r.GetAddress(), Workspace: r.GetWorkspace(),
			Action: r.GetAction(), Target: r.GetTarget(), Outcome: r.GetOutcome(), Reason: r.GetReason(), RequestID: r.GetRequestId(), TraceID: r.GetTraceId(), Duration: r.GetDurationMs(),
		}
		if arguments := r.GetArgumentsJson(); arguments != "" {
			all[i].Arguments = json.RawMessage(arguments)
		}
	}
	return all
}

// timeToProto converts the zero time to an absent field.
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
