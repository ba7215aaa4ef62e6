package audit

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins/host"
	auditv1 "github.com/ropewalk/ropewalk/proto/ropewalk/audit/v1"
)

// Clients returns this contract's clients by protocol version.
func Clients() map[int]func(grpc.ClientConnInterface) Sink {
	return map[int]func(grpc.ClientConnInterface) Sink{1: Client}
}

// Client returns the sink at the other end of conn, which uses protocol version 1. It hides the types of the protocol.
// The caller must close the connection. The sink is a Reader; if the plugin lacks that capability, Read returns
// plugins.ErrUnimplemented.
func Client(conn grpc.ClientConnInterface) Sink {
	return client{service: auditv1.NewAuditServiceClient(host.Wrap(conn))}
}

type client struct {
	service auditv1.AuditServiceClient
}

func (c client) Write(ctx context.Context, stream string, records []Record) error {
	_, err := c.service.Write(ctx, &auditv1.WriteRequest{Stream: stream, Records: toProto(records)})
	return err
}

func (c client) Read(ctx context.Context, stream string, after uint64, limit int) ([]Record, error) {
	resp, err := c.service.Read(ctx, &auditv1.ReadRequest{Stream: stream, After: after, Limit: uint32(limit)}) //nolint:gosec // 1 to 1,000
	if err != nil {
		return nil, err
	}
	return fromProto(resp.GetRecords()), nil
}
