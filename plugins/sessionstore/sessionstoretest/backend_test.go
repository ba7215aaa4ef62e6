package sessionstoretest_test

import (
	"context"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// backend is a database that several processes share, and that can go away.
type backend struct {
	*memory.Store
	mu      sync.Mutex
	stopped bool
	stalled chan struct{}
	locked  sync.Map // ids that a process holds a lock on

	writing sync.Mutex // makes a Replace one step
}

func newBackend() *backend { return &backend{Store: memory.New()} }

func (b *backend) Stop(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return nil
}

func (b *backend) Stall(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = make(chan struct{})
	return nil
}

func (b *backend) Start(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = false
	if b.stalled != nil {
		close(b.stalled)
		b.stalled = nil
	}
	return nil
}

// reach is what a call does first.
func (b *backend) reach(ctx context.Context) error {
	b.mu.Lock()
	stopped, stalled := b.stopped, b.stalled
	b.mu.Unlock()
	if stopped {
		return plugins.ErrUnavailable
	}
	if stalled != nil {
		select {
		case <-stalled:
		case <-ctx.Done():
			return plugins.Unavailable(ctx.Err())
		}
	}
	return nil
}

// process is an honest process of a store on a backend. Each liar embeds it and breaks one promise.
type process struct{ *backend }

func (p process) Durable() {}

func (p process) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.Store.Put(ctx, rec, ttl)
}

func (p process) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if err := p.reach(ctx); err != nil {
		return sessionstore.Record{}, err
	}
	return p.Store.Get(ctx, id)
}

func (p process) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.Store.Touch(ctx, batch)
}

func (p process) Delete(ctx context.Context, id string) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.Store.Delete(ctx, id)
}

func (p process) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if err := sessionstore.CheckReplace(rec, ttl); err != nil {
		return false, err
	}
	if err := p.reach(ctx); err != nil {
		return false, err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	now, err := p.Store.Get(ctx, rec.ID)
	if err != nil || now.Owner != owner {
		return false, err
	}
	if ttl == 0 {
		ttl = time.Until(now.ExpiresAt)
	}
	return true, p.Store.Put(ctx, rec, ttl)
}

// killable is a process that has something to lose.
type killable interface{ kill() }

// closable is a process that does something when it ends in good order.
type closable interface{ end() }

// subject is a store whose processes are made by open, on one backend.
func subject(open func(process) sessionstore.Store) sessionstoretest.Subject {
	shared := newBackend()
	return sessionstoretest.Subject{
		Store: open(process{shared}), Durable: true, Backend: shared,
		Open: func(context.Context) (*sessionstoretest.Process, error) {
			store := open(process{shared})
			kill := func() {
				if k, ok := store.(killable); ok {
					k.kill()
				}
			}
			end := func() {
				if c, ok := store.(closable); ok {
					c.end()
				}
			}
			return &sessionstoretest.Process{Store: store, Kill: kill, Close: end}, nil
		},
	}
}

func honestProcess(p process) sessionstore.Store { return p }
