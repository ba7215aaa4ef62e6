package sessionstore

import (
	"context"

	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// server is the plugin's side of protocol version 1. It refuses invalid arguments as the contract requires, so that the
// store behind it gets only valid calls. Package server translates the errors.
type server struct {
	sessionstorev1.UnimplementedSessionStoreServiceServer
	store Store
}

func (s server) Put(ctx context.Context, req *sessionstorev1.PutRequest) (*sessionstorev1.PutResponse, error) {
	rec, ttl := fromProto(req.GetRecord()), req.GetTtl().AsDuration()
	if err := CheckPut(rec, ttl); err != nil {
		return nil, err
	}
	return &sessionstorev1.PutResponse{}, s.store.Put(ctx, rec, ttl)
}

func (s server) Get(ctx context.Context, req *sessionstorev1.GetRequest) (*sessionstorev1.GetResponse, error) {
	rec, err := s.store.Get(ctx, req.GetId())
	if err != nil {
		return nil, err
	}
	return &sessionstorev1.GetResponse{Record: toProto(rec), ExpiresAt: timeToProto(rec.ExpiresAt)}, nil
}

func (s server) Touch(ctx context.Context, req *sessionstorev1.TouchRequest) (*sessionstorev1.TouchResponse, error) {
	batch := make([]Touch, len(req.GetTouches()))
	for i, t := range req.GetTouches() {
		batch[i] = Touch{ID: t.GetId(), LastAccessedAt: timeFromProto(t.GetLastAccessedAt()), TTL: t.GetTtl().AsDuration()}
	}
	if err := CheckTouch(batch); err != nil {
		return nil, err
	}
	return &sessionstorev1.TouchResponse{}, s.store.Touch(ctx, batch)
}

func (s server) Delete(ctx context.Context, req *sessionstorev1.DeleteRequest) (*sessionstorev1.DeleteResponse, error) {
	return &sessionstorev1.DeleteResponse{}, s.store.Delete(ctx, req.GetId())
}

func (s server) Replace(ctx context.Context, req *sessionstorev1.ReplaceRequest) (*sessionstorev1.ReplaceResponse, error) {
	store, ok := s.store.(Replacer)
	if !ok {
		return s.UnimplementedSessionStoreServiceServer.Replace(ctx, req)
	}
	rec, ttl := fromProto(req.GetRecord()), req.GetTtl().AsDuration()
	if err := CheckReplace(rec, ttl); err != nil {
		return nil, err
	}
	replaced, err := store.Replace(ctx, rec, ttl, req.GetExpectedOwner())
	return &sessionstorev1.ReplaceResponse{Replaced: replaced}, err
}
