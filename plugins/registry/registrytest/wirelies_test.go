package registrytest_test

import (
	"bytes"
	"context"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
)

// wire is a registry of one large bundle that was written without the SDK: it sends the messages itself.
type wire struct {
	registryv1.UnimplementedRegistryServiceServer
	piece      int  // bytes of one message
	takesLimit bool // over 100
}

const (
	wireName = "io.example/large"
	wireSize = 5 << 20 / 2
)

func (w wire) plugin() plugins.Plugin {
	return plugins.Plugin{Kind: plugins.KindRegistry, Impl: w, ProtocolVersions: map[int]plugins.Register{
		1: func(s grpc.ServiceRegistrar) { registryv1.RegisterRegistryServiceServer(s, w) },
	}}
}

func (w wire) Search(_ context.Context, req *registryv1.SearchRequest) (*registryv1.SearchResponse, error) {
	if req.GetLimit() > registry.MaxLimit && !w.takesLimit {
		return nil, plugins.ErrInvalid
	}
	if !bytes.Contains([]byte(wireName), []byte(req.GetText())) {
		return &registryv1.SearchResponse{}, nil
	}
	return &registryv1.SearchResponse{Entries: []*registryv1.Entry{{Name: wireName, Version: "1.0.0"}}}, nil
}

func (w wire) Resolve(_ context.Context, req *registryv1.ResolveRequest) (*registryv1.ResolveResponse, error) {
	switch {
	case req.GetName() == "":
		return nil, plugins.ErrInvalid
	case req.GetName() != wireName, req.GetVersion() != "" && req.GetVersion() != "1.0.0":
		return nil, plugins.ErrNotFound
	}
	return &registryv1.ResolveResponse{Package: &registryv1.Package{Name: wireName, Version: "1.0.0", Kind: registryv1.Kind_KIND_MCPB, Artifact: "large", Size: wireSize}}, nil
}

func (w wire) Fetch(req *registryv1.FetchRequest, stream grpc.ServerStreamingServer[registryv1.FetchResponse]) error {
	if req.GetPackage().GetKind() != registryv1.Kind_KIND_MCPB {
		return plugins.ErrInvalid
	}
	if req.GetPackage().GetArtifact() != "large" {
		return plugins.ErrNotFound
	}
	for rest := make([]byte, wireSize); len(rest) > 0; {
		n := min(len(rest), w.piece)
		if err := stream.Send(&registryv1.FetchResponse{Chunk: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// wireLies are wrong in a way that only their messages show.
func wireLies() map[string]struct {
	check string
	lie   wire
} {
	type l = struct {
		check string
		lie   wire
	}
	return map[string]l{
		"sends pieces of more than 1 MiB": {"a piece of a download has at most 1 MiB", wire{piece: 1<<20 + 1}},
		"sends a bundle in one piece":     {"a piece of a download has at most 1 MiB", wire{piece: wireSize}},
		"takes every limit of a request":  {"a limit over 100 is invalid, however large", wire{piece: 1 << 20, takesLimit: true}},
	}
}
