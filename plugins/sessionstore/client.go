package sessionstore

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ropewalk/ropewalk/plugins"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// Clients are the wire versions of this contract that a server can speak, each with its facade.
func Clients() map[int]func(grpc.ClientConnInterface) Store {
	return map[int]func(grpc.ClientConnInterface) Store{1: Client}
}

// Client is the store at the other end of conn, which speaks wire version 1. Wire types stop here.
// The connection stays the caller's to close.
func Client(conn grpc.ClientConnInterface) Store {
	return client{wire: sessionstorev1.NewSessionStoreServiceClient(plugins.Wrap(conn))}
}

type client struct {
	wire sessionstorev1.SessionStoreServiceClient
}

func (c client) Put(ctx context.Context, rec Record, ttl time.Duration) error {
	_, err := c.wire.Put(ctx, &sessionstorev1.PutRequest{Record: toWire(rec), Ttl: durationpb.New(ttl)})
	return err
}

func (c client) Get(ctx context.Context, id string) (Record, error) {
	resp, err := c.wire.Get(ctx, &sessionstorev1.GetRequest{Id: id})
	if err != nil {
		return Record{}, err
	}
	if resp.GetRecord() == nil {
		return Record{}, errors.New("the session store answered without a record")
	}
	return fromWire(resp.GetRecord()), nil
}

func (c client) Touch(ctx context.Context, batch []Touch) error {
	req := &sessionstorev1.TouchRequest{Touches: make([]*sessionstorev1.SessionTouch, len(batch))}
	for i, t := range batch {
		req.Touches[i] = &sessionstorev1.SessionTouch{Id: t.ID, LastAccessedAt: timeToWire(t.LastAccessedAt), Ttl: durationpb.New(t.TTL)}
	}
	_, err := c.wire.Touch(ctx, req)
	return err
}

func (c client) Delete(ctx context.Context, id string) error {
	_, err := c.wire.Delete(ctx, &sessionstorev1.DeleteRequest{Id: id})
	return err
}
