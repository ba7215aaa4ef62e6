package audit

import (
	"context"

	auditv1 "github.com/ropewalk/ropewalk/proto/ropewalk/audit/v1"
)

// server is the plugin's side of protocol version 1. It rejects invalid arguments of Write and Read, so that
// the sink gets only valid calls. The SDK translates the errors.
type server struct {
	auditv1.UnimplementedAuditServiceServer
	sink Sink
}

func (s server) Write(ctx context.Context, req *auditv1.WriteRequest) (*auditv1.WriteResponse, error) {
	records := fromProto(req.GetRecords())
	if err := CheckWrite(req.GetStream(), records); err != nil {
		return nil, err
	}
	return &auditv1.WriteResponse{}, s.sink.Write(ctx, req.GetStream(), records)
}

func (s server) Read(ctx context.Context, req *auditv1.ReadRequest) (*auditv1.ReadResponse, error) {
	reader, ok := s.sink.(Reader)
	if !ok {
		return s.UnimplementedAuditServiceServer.Read(ctx, req)
	}
	if err := CheckRead(int(req.GetLimit())); err != nil {
		return nil, err
	}
	records, err := reader.Read(ctx, req.GetStream(), req.GetAfter(), int(req.GetLimit()))
	return &auditv1.ReadResponse{Records: toProto(firstMessage(records))}, err
}

// firstMessage returns as many of the first records as fit in one message, but at least one.
func firstMessage(records []Record) []Record {
	total := 0
	for i, r := range records {
		total += 64 + len(r.Actor) + len(r.Address) + len(r.Workspace) + len(r.Action) + len(r.Target) + len(r.Outcome) + len(r.Reason) + len(r.RequestID) + len(r.TraceID) + len(r.Arguments)
		if total > MaxBatch && i > 0 {
			return records[:i]
		}
	}
	return records
}
