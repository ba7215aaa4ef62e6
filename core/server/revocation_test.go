package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// fakeFeed is an adapter with scripted streams: each stream ends when its channel is closed.
type fakeFeed struct {
	streams chan chan auth.Revocation
}

func (fakeFeed) Describe(context.Context) (auth.Description, error) {
	return auth.Description{Issuer: "https://idp"}, nil
}

func (f fakeFeed) Watch(ctx context.Context, revoked func(auth.Revocation) error) error {
	stream := make(chan auth.Revocation)
	select {
	case f.streams <- stream:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		select {
		case r, open := <-stream:
			if !open {
				return plugins.ErrUnavailable
			}
			if err := revoked(r); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fakeRevoker records the calls of a feed.
type fakeRevoker struct {
	failures  int // how many of the next calls to Revoke fail
	revoked   []core.Revocation
	forgotten int
}

func (r *fakeRevoker) ForgetVerdicts() { r.forgotten++ }

func (r *fakeRevoker) Revoke(_ context.Context, one core.Revocation) error {
	if r.failures > 0 {
		r.failures--
		return errors.New("the database is down")
	}
	r.revoked = append(r.revoked, one)
	return nil
}

// runFeed runs a feed in a synctest bubble until test returns.
func runFeed(t *testing.T, test func(f fakeFeed, access *fakeRevoker)) {
	synctest.Test(t, func(t *testing.T) {
		f, access := fakeFeed{make(chan chan auth.Revocation)}, &fakeRevoker{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			feed{f, access, hclog.NewNullLogger()}.run(ctx)
		}()
		test(f, access)
		cancel()
		<-ended
	})
}

func TestAFeedThatEndsIsReopenedAndClearsTheVerdicts(t *testing.T) {
	runFeed(t, func(f fakeFeed, access *fakeRevoker) {
		for i := range 3 {
			stream := <-f.streams
			<-time.After(2 * feedSettles)
			synctest.Wait()
			if want := 2*i + 1; access.forgotten != want { // once for each start, once for each end
				t.Errorf("stream %d: verdicts were forgotten %d times, want %d", i, access.forgotten, want)
			}
			close(stream)
			began := time.Now()
			synctest.Wait()
			if time.Since(began) > longestFeedPause {
				t.Errorf("it was opened again after %v", time.Since(began))
			}
		}
	})
}

func TestARevocationIsCarriedOutEvenIfTheDatabaseIsUnavailableAtFirst(t *testing.T) {
	runFeed(t, func(f fakeFeed, access *fakeRevoker) {
		stream := <-f.streams
		access.failures = 5
		stream <- auth.Revocation{Issuer: "https://idp", Subject: "alice"}
		stream <- auth.Revocation{Issuer: "https://idp", TokenSHA256: "00ff"} // received when the first revocation has been carried out
		synctest.Wait()
		want := []core.Revocation{{Issuer: "https://idp", Subject: "alice"}, {Issuer: "https://idp", Token: "00ff"}}
		if !slices.Equal(access.revoked, want) {
			t.Errorf("got %+v", access.revoked)
		}
	})
}

func TestAnAdapterRevokesOnlyForItsOwnIssuer(t *testing.T) {
	runFeed(t, func(f fakeFeed, access *fakeRevoker) {
		stream := <-f.streams
		for _, r := range []auth.Revocation{
			{Issuer: "https://another", Subject: "alice"}, {Subject: "alice"}, {Issuer: "https://idp"},
			{Issuer: "https://idp", Subject: "alice", TokenSHA256: "00ff"},
		} {
			stream <- r
		}
		synctest.Wait()
		if len(access.revoked) != 0 {
			t.Errorf("got %+v", access.revoked)
		}
	})
}
