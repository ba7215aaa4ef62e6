package registry

import (
	"context"
	"errors"
	"io"
	"math"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins/host"
	registryv1 "github.com/ropewalk/ropewalk/proto/ropewalk/registry/v1"
)

// Clients returns the clients of this contract by protocol version.
func Clients() map[int]func(grpc.ClientConnInterface) Registry {
	return map[int]func(grpc.ClientConnInterface) Registry{1: Client}
}

// Client returns the registry at the other end of conn, which uses protocol version 1. The caller still owns conn and
// must close it.
func Client(conn grpc.ClientConnInterface) Registry {
	return client{service: registryv1.NewRegistryServiceClient(host.Wrap(conn))}
}

type client struct {
	service registryv1.RegistryServiceClient
}

func (c client) Search(ctx context.Context, q Query) (Page, error) {
	if q.Limit < 0 || q.Limit > math.MaxUint32 {
		return Page{}, CheckQuery(q) // a negative limit has no encoding; the plugin refuses the other invalid limits
	}
	resp, err := c.service.Search(ctx, &registryv1.SearchRequest{Text: q.Text, Limit: uint32(q.Limit), Cursor: q.Cursor})
	if err != nil {
		return Page{}, err
	}
	page := Page{NextCursor: resp.GetNextCursor(), Entries: make([]Entry, len(resp.GetEntries()))}
	for i, e := range resp.GetEntries() {
		page.Entries[i] = Entry{Name: e.GetName(), Title: e.GetTitle(), Description: e.GetDescription(), Version: e.GetVersion(), TrustScore: int(e.GetTrustScore())}
	}
	return page, nil
}

func (c client) Resolve(ctx context.Context, ref Ref) (Package, error) {
	resp, err := c.service.Resolve(ctx, &registryv1.ResolveRequest{Name: ref.Name, Version: ref.Version, Os: ref.OS, Arch: ref.Arch})
	if err != nil {
		return Package{}, err
	}
	if resp.GetPackage() == nil {
		return Package{}, errors.New("the registry returned no package")
	}
	return fromProto(resp.GetPackage()), nil
}

// Fetch waits for the first bytes, so that Fetch itself, not a later Read, returns a refusal.
func (c client) Fetch(ctx context.Context, pkg Package) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.service.Fetch(ctx, &registryv1.FetchRequest{Package: toProto(pkg)})
	if err != nil {
		cancel()
		return nil, err
	}
	body := &download{stream: stream, cancel: cancel}
	if body.next(); body.err != nil && !errors.Is(body.err, io.EOF) {
		cancel()
		return nil, body.err
	}
	return body, nil
}

// download reads the chunks of a stream as one body.
type download struct {
	stream grpc.ServerStreamingClient[registryv1.FetchResponse]
	cancel context.CancelFunc
	rest   []byte
	err    error // after rest
	most   int   // size in bytes of the largest message
}

func (d *download) next() {
	resp, err := d.stream.Recv()
	d.rest, d.err = resp.GetChunk(), err
	d.most = max(d.most, len(d.rest))
}

// LargestPiece returns the size in bytes of the largest message read so far, for the conformance kit.
func (d *download) LargestPiece() int { return d.most }

func (d *download) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(d.rest) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.next()
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// Close ends the stream, even if it has not been read to the end.
func (d *download) Close() error {
	d.cancel()
	d.rest, d.err = nil, errClosed
	return nil
}

var errClosed = errors.New("the download is closed")
