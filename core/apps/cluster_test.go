package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// memoryHub holds records that several servers share, and delivers their messages to each other.
type memoryHub struct {
	*memoryRecords
	mu    sync.Mutex
	seats map[*memorySeat]struct{}
}

func newHub(rows ...core.Installation) *memoryHub {
	return &memoryHub{memoryRecords: newMemoryRecords(rows...), seats: map[*memorySeat]struct{}{}}
}

// memorySeat is one server's connection to a hub.
type memorySeat struct {
	*memoryHub
	name    string
	changes chan core.Change
	deaf    bool // receives no changes
	asks    chan peerRequest
	gone    chan struct{} // closed once it no longer answers
	down    int           // number of reads of single records that will still fail
}

type peerRequest struct {
	ctx      context.Context
	question json.RawMessage
	answer   chan json.RawMessage
}

func (h *memoryHub) seat() *memorySeat {
	s := &memorySeat{memoryHub: h, changes: make(chan core.Change, 1000), asks: make(chan peerRequest), gone: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.name = fmt.Sprint("SERVER", len(h.seats))
	h.seats[s] = struct{}{}
	return s
}

func (s *memorySeat) tell(c core.Change, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.seats {
		if other != s && !other.deaf && err == nil {
			other.changes <- c
		}
	}
	return err
}

// outage makes the next n reads of single records fail.
func (s *memorySeat) outage(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = n
}

func (s *memorySeat) Installation(ctx context.Context, workspace, name string) (core.Installation, error) {
	s.mu.Lock()
	fails := s.down > 0
	s.down--
	s.mu.Unlock()
	if fails {
		return core.Installation{}, core.Errorf(core.CodeUnavailable, "the records are unavailable")
	}
	return s.memoryRecords.Installation(ctx, workspace, name)
}

func (s *memorySeat) AddInstallation(ctx context.Context, i core.Installation) error {
	return s.tell(core.Change{Kind: core.ChangeApp, Workspace: i.Workspace, Name: i.Name}, s.memoryRecords.AddInstallation(ctx, i))
}

func (s *memorySeat) ChangeInstallation(ctx context.Context, workspace, name string, change func(*core.Installation) error) (core.Installation, error) {
	i, err := s.memoryRecords.ChangeInstallation(ctx, workspace, name, change)
	return i, s.tell(core.Change{Kind: core.ChangeApp, Workspace: workspace, Name: name}, err)
}

func (s *memorySeat) DeleteInstallation(ctx context.Context, workspace, name, id string) error {
	return s.tell(core.Change{Kind: core.ChangeApp, Workspace: workspace, Name: name}, s.memoryRecords.DeleteInstallation(ctx, workspace, name, id))
}

func (s *memorySeat) Uninstall(ctx context.Context, workspace, name, id string, until time.Time) error {
	return s.tell(core.Change{Kind: core.ChangeApp, Workspace: workspace, Name: name}, s.memoryRecords.Uninstall(ctx, workspace, name, id, until))
}

func (s *memorySeat) RestoreInstallation(ctx context.Context, workspace, name string) (core.Installation, error) {
	r, err := s.memoryRecords.RestoreInstallation(ctx, workspace, name)
	return r, s.tell(core.Change{Kind: core.ChangeApp, Workspace: workspace, Name: name}, err)
}

func (s *memorySeat) Changes(ctx context.Context) <-chan core.Change {
	out := make(chan core.Change)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case c := <-s.changes:
				select {
				case out <- c:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

func (s *memorySeat) PutFiles(_ context.Context, sum string, content io.Reader) error {
	raw, err := io.ReadAll(content)
	s.memoryRecords.mu.Lock()
	defer s.memoryRecords.mu.Unlock()
	s.files[sum] = raw
	return err
}

func (s *memorySeat) ServerID() string { return s.name }

func (s *memorySeat) RequestPeer(ctx context.Context, server, _ string, question json.RawMessage) (json.RawMessage, error) {
	e := peerRequest{ctx, question, make(chan json.RawMessage, 1)}
	s.mu.Lock()
	var asks chan peerRequest
	gone := make(chan struct{})
	close(gone)
	for other := range s.seats {
		if other.name == server {
			asks, gone = other.asks, other.gone
		}
	}
	s.mu.Unlock()
	select {
	case asks <- e:
		return <-e.answer, nil
	case <-gone:
		return nil, core.Errorf(core.CodeNotFound, "gone")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *memorySeat) ServePeers(ctx context.Context, _ string, _ int, answer func(context.Context, json.RawMessage) json.RawMessage) {
	defer close(s.gone)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-s.asks:
			e.answer <- answer(e.ctx, e.question)
		}
	}
}

// memoryReplica is one of several servers. The processes of its apps are simulated in memory.
type memoryReplica struct {
	*Manager
	app    *memoryApp
	events *memoryEvents
	seat   *memorySeat
}

// replica returns an open manager that is connected to the hub.
func (h *memoryHub) replica(t *testing.T) *memoryReplica {
	t.Helper()
	r := &memoryReplica{app: &memoryApp{}, events: newMemoryEvents(), seat: h.seat()}
	policy := DefaultPolicy()
	policy.Jitter = 0
	r.Manager = New(Options{Home: t.TempDir(), Records: r.seat, Cluster: r.seat, Events: r.events, Policy: &policy})
	r.start = r.app.launch
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := r.app.alive(); n != 0 {
			t.Errorf("%d instances remain after Close", n)
		}
	})
	open(t, r.Manager)
	return r
}

// joins connects a manager with real processes to the hub.
func (h *memoryHub) joins(more ...func(*Options)) func(*Options) {
	seat := h.seat()
	return func(o *Options) {
		o.Records, o.Cluster = seat, seat
		for _, change := range more {
			change(o)
		}
	}
}
