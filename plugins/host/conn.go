package host

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/internal/status"
)

// Wrap returns conn with its errors translated from gRPC statuses into those of package plugins, so that a contract's
// client can return the errors of its generated client unchanged.
func Wrap(conn grpc.ClientConnInterface) grpc.ClientConnInterface { return translating{conn} }

type translating struct{ conn grpc.ClientConnInterface }

func (t translating) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	a := &answer{}
	err := t.conn.Invoke(context.WithValue(ctx, responseKey{}, a), method, args, reply, opts...)
	return a.disconnected(received(ctx, err))
}

func (t translating) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := t.conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, received(ctx, err)
	}
	return translatingStream{stream, ctx}, nil
}

// translatingStream keeps the caller's context, because the stream's own context ends with the connection.
type translatingStream struct {
	grpc.ClientStream
	ctx context.Context
}

func (s translatingStream) RecvMsg(m any) error {
	return received(s.ctx, s.ClientStream.RecvMsg(m))
}

func (s translatingStream) SendMsg(m any) error {
	return received(s.ctx, s.ClientStream.SendMsg(m))
}

// received distinguishes a caller that cancelled from a connection that was closed during a call. gRPC reports Canceled
// for both, but only the former is the caller's decision.
func received(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	translated := status.FromStatus(err)
	if errors.Is(translated, context.Canceled) && ctx.Err() == nil {
		return status.NewError(translated.Error(), plugins.ErrUnavailable)
	}
	return translated
}
