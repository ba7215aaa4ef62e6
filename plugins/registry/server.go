package registry

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
)

// chunk is the number of bytes of a bundle per message.
const chunk = 64 << 10

// server is the plugin's side of protocol version 1. It refuses invalid arguments as the contract requires, so that the
// registry behind it gets only valid calls. Package server translates the errors.
type server struct {
	registryv1.UnimplementedRegistryServiceServer
	registry Registry
}

func (s server) Search(ctx context.Context, req *registryv1.SearchRequest) (*registryv1.SearchResponse, error) {
	q := Query{Text: req.GetText(), Limit: int(req.GetLimit()), Cursor: req.GetCursor()}
	if err := CheckQuery(q); err != nil {
		return nil, err
	}
	page, err := s.registry.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &registryv1.SearchResponse{NextCursor: page.NextCursor, Entries: make([]*registryv1.Entry, len(page.Entries))}
	for i, e := range page.Entries {
		resp.Entries[i] = &registryv1.Entry{Name: e.Name, Title: e.Title, Description: e.Description, Version: e.Version, TrustScore: score(e.TrustScore)}
	}
	return resp, nil
}

func (s server) Resolve(ctx context.Context, req *registryv1.ResolveRequest) (*registryv1.ResolveResponse, error) {
	ref := Ref{Name: req.GetName(), Version: req.GetVersion(), OS: req.GetOs(), Arch: req.GetArch()}
	if err := CheckRef(ref); err != nil {
		return nil, err
	}
	pkg, err := s.registry.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &registryv1.ResolveResponse{Package: toProto(pkg)}, nil
}

func (s server) Fetch(req *registryv1.FetchRequest, stream grpc.ServerStreamingServer[registryv1.FetchResponse]) (err error) {
	pkg := fromProto(req.GetPackage())
	if err := CheckFetch(pkg); err != nil {
		return err
	}
	body, err := s.registry.Fetch(stream.Context(), pkg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	buffer := make([]byte, chunk)
	for {
		n, err := fill(buffer, body)
		if n > 0 {
			if err := stream.Send(&registryv1.FetchResponse{Chunk: buffer[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill reads until buffer is full or the body ends. Unlike io.ReadFull, it returns the body's error unchanged:
// io.ErrUnexpectedEOF then means that the body broke off.
func fill(buffer []byte, body io.Reader) (n int, err error) {
	for n < len(buffer) && err == nil {
		var read int
		read, err = body.Read(buffer[n:])
		n += read
	}
	return n, err
}
