package sessionstore

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ropewalk/ropewalk/plugins/host"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// Clients returns the clients of this contract by protocol version.
func Clients() map[int]func(grpc.ClientConnInterface) Store {
	return map[int]func(grpc.ClientConnInterface) Store{1: Client}
}

// Client returns the store at the other end of conn, which uses protocol version 1. The caller still owns conn and must
// close it. The store is always a Replacer. Without that capability of the plugin, Replace returns
// plugins.ErrUnimplemented.
func Client(conn grpc.ClientConnInterface) Store {
	return client{service: sessionstorev1.NewSessionStoreServiceClient(host.Wrap(conn))}
}

type client struct {
	service sessionstorev1.SessionStoreServiceClient
}

func (c client) Put(ctx context.Context, rec Record, ttl time.Duration) error {
	_, err := c.service.Put(ctx, &sessionstorev1.PutRequest{Record: toProto(rec), Ttl: durationpb.New(ttl)})
	return err
}

func (c client) Get(ctx context.Context, id string) (Record, error) {
	resp, err := c.service.Get(ctx, &sessionstorev1.GetRequest{Id: id})
	if err != nil {
		return Record{}, err
	}
	if resp.GetRecord() == nil {
		return Record{}, errors.New("the session store returned no record")
	}
	rec := fromProto(resp.GetRecord())
	rec.ExpiresAt = timeFromProto(resp.GetExpiresAt())
	return rec, nil
}

func (c client) Touch(ctx context.Context, batch []Touch) error {
	req := &sessionstorev1.TouchRequest{Touches: make([]*sessionstorev1.SessionTouch, len(batch))}
	for i, t := range batch {
		req.Touches[i] = &sessionstorev1.SessionTouch{Id: t.ID, LastAccessedAt: timeToProto(t.LastAccessedAt), Ttl: durationpb.New(t.TTL)}
	}
	_, err := c.service.Touch(ctx, req)
	return err
}

func (c client) Delete(ctx context.Context, id string) error {
	_, err := c.service.Delete(ctx, &sessionstorev1.DeleteRequest{Id: id})
	return err
}

func (c client) Replace(ctx context.Context, rec Record, ttl time.Duration, owner string) (bool, error) {
	req := &sessionstorev1.ReplaceRequest{Record: toProto(rec), ExpectedOwner: owner}
	if ttl != 0 {
		req.Ttl = durationpb.New(ttl)
	}
	resp, err := c.service.Replace(ctx, req)
	return resp.GetReplaced(), err
}
