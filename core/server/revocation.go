package server

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	// feedSettles is the delay after which a new feed drops the cached verdicts. This is necessary because the adapter
	// does not repeat the revocations that it made while there was no feed.
	feedSettles = time.Second
	// firstFeedPause and longestFeedPause bound the pause between the end of a feed and the next one.
	firstFeedPause, longestFeedPause = 50 * time.Millisecond, 5 * time.Second
)

// revoker carries out the revocations of a feed. *access.Access implements it.
type revoker interface {
	Revoke(ctx context.Context, r core.Revocation) error
	ForgetVerdicts()
}

// feed receives the revocations of one auth adapter.
type feed struct {
	adapter interface {
		auth.Revoker
		Describe(ctx context.Context) (auth.Description, error)
	}
	access revoker
	log    hclog.Logger
}

// run receives revocations until ctx ends. It reopens the feed whenever it ends, for example because the plugin
// restarted.
func (f feed) run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstFeedPause, longestFeedPause
	for {
		opened := time.Now()
		settled := time.AfterFunc(feedSettles, f.access.ForgetVerdicts)
		err := f.adapter.Watch(ctx, func(r auth.Revocation) error { return f.apply(ctx, r) })
		settled.Stop()
		if ctx.Err() != nil {
			return
		}
		f.access.ForgetVerdicts()
		f.log.Warn("cannot receive the auth adapter's revocations; retrying", "error", err)
		if time.Since(opened) > longestFeedPause {
			pause.Reset()
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}

// apply carries out a revocation, and retries until it succeeds. It ignores revocations for issuers other than the
// adapter's own.
func (f feed) apply(ctx context.Context, r auth.Revocation) error {
	about, err := f.adapter.Describe(ctx)
	if err != nil {
		return err
	}
	if r.Issuer != about.Issuer || (r.Subject == "") == (r.TokenSHA256 == "") {
		f.log.Warn("ignoring a revocation; it must contain the adapter's issuer, and either a subject or a token", "issuer", r.Issuer)
		return nil
	}
	revocation := core.Revocation{Issuer: r.Issuer, Subject: r.Subject, Token: r.TokenSHA256}
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := f.access.Revoke(ctx, revocation)
		if err != nil && ctx.Err() == nil {
			f.log.Error("could not record a revocation; retrying", "error", err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(0))
	if err == nil {
		f.log.Info("revocation received", "issuer", r.Issuer, "subject", r.Subject)
	}
	return err
}

// feeds contains the feeds of the running auth adapters. The zero value has none.
type feeds struct {
	mu   sync.Mutex
	stop map[*pluginhost.Auth]func()
}

// follow opens the feed of an adapter, if it reports revocations. unfollow or closeFeeds closes it.
func (s *Server) follow(handle *pluginhost.Auth) {
	if !handle.Revokes() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	f := feed{handle, s.access, s.log.Named("revocation")}
	running.Go(func() { f.run(ctx) })
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	if s.feeds.stop == nil {
		s.feeds.stop = map[*pluginhost.Auth]func(){}
	}
	s.feeds.stop[handle] = func() { cancel(); running.Wait() }
}

// unfollow ends the feed of an adapter that was replaced, if it has one.
func (s *Server) unfollow(handle *pluginhost.Auth) {
	s.feeds.mu.Lock()
	stop := s.feeds.stop[handle]
	delete(s.feeds.stop, handle)
	s.feeds.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// closeFeeds ends all feeds.
func (s *Server) closeFeeds(context.Context) error {
	s.feeds.mu.Lock()
	all := s.feeds.stop
	s.feeds.stop = nil
	s.feeds.mu.Unlock()
	for _, stop := range all {
		stop()
	}
	return nil
}

// pendingRevocations limits the number of waiting changes. Beyond it, one check of all users replaces them.
const pendingRevocations = 256

// endRevoked makes /mcp end the sessions and streams of users who lost access, until the server
// closes. The event streams of /v1 watch for revocations themselves.
func (s *Server) endRevoked() {
	changes, overflow := make(chan string, pendingRevocations), make(chan struct{}, 1)
	stopWatching := s.access.WatchRevocations(func(userID string) {
		select {
		case changes <- userID:
		default:
			select {
			case overflow <- struct{}{}:
			default:
			}
		}
	})
	s.untilClosed("revocations", func(ctx context.Context) {
		defer stopWatching()
		for {
			select {
			case user := <-changes:
				s.endpoint.EndRevoked(ctx, user)
			case <-overflow:
				s.endpoint.EndRevoked(ctx, "")
			case <-ctx.Done():
				return
			}
		}
	})
}
