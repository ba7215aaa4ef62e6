package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/redis/go-redis/v9"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Store is a sessionstore.Store in Redis. It is ready after Configure.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	timeout time.Duration
	touch   *redis.Script
	replace *redis.Script
	log     hclog.Logger
}

//go:embed touch.lua
var touchScript string

//go:embed replace.lua
var replaceScript string

// New returns a store that needs Configure.
func New() *Store {
	return &Store{touch: redis.NewScript(touchScript), replace: redis.NewScript(replaceScript), log: hclog.NewNullLogger()}
}

// Name returns "redis".
func (*Store) Name() string { return "redis" }

// UseLogger implements plugins.LoggerUser.
func (s *Store) UseLogger(log hclog.Logger) { s.log = log }

// Validate implements plugins.Validator.
func (*Store) Validate(_ context.Context, c plugins.Config) error {
	config := defaults()
	return c.Decode(&config)
}

// Configure implements plugins.Configurer. It returns an error unless Redis responds.
func (s *Store) Configure(ctx context.Context, c plugins.Config) error {
	config := defaults()
	if err := c.Decode(&config); err != nil {
		return err
	}
	redis.SetLogger(libraryLog{s.log}) // the library has one logger for the whole process
	client, err := config.connect()
	if err != nil {
		return err
	}
	s.timeout = time.Duration(config.Timeout)
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close()
		return unavailable(err)
	}
	s.client, s.prefix = client, config.KeyPrefix
	return nil
}

// Close implements io.Closer.
func (s *Store) Close() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// Put implements sessionstore.Store.
func (s *Store) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := sessionstore.CheckPut(rec, ttl); err != nil {
		return err
	}
	value, err := encode(rec)
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return unavailable(s.write(ctx, "set", s.prefix+rec.ID, value, "px", millis(ttl)).Err())
}

// Get implements sessionstore.Store.
func (s *Store) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var value *redis.StringCmd
	var left *redis.DurationCmd
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		value, left = pipe.Get(ctx, s.prefix+id), pipe.PTTL(ctx, s.prefix+id)
		return nil
	})
	if errors.Is(value.Err(), redis.Nil) {
		return sessionstore.Record{}, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	if err != nil {
		return sessionstore.Record{}, unavailable(err)
	}
	rec, err := decode(value.Val())
	if left.Val() > 0 { // negative if the session ended between the two commands
		rec.ExpiresAt = time.Now().Add(left.Val())
	}
	return rec, err
}

// Replace implements sessionstore.Replacer. It takes one round trip, or two if the node does not know the script yet.
func (s *Store) Replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	if err := sessionstore.CheckReplace(rec, ttl); err != nil {
		return false, err
	}
	value, err := encode(rec)
	if err != nil {
		return false, err
	}
	lifetime := int64(0)
	if ttl > 0 {
		lifetime = millis(ttl)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	outcome, err := s.write(ctx, "evalsha", s.replace.Hash(), 1, s.prefix+rec.ID, value, lifetime, owner).Int()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		outcome, err = s.write(ctx, "eval", replaceScript, 1, s.prefix+rec.ID, value, lifetime, owner).Int()
	}
	switch {
	case err != nil:
		return false, unavailable(err)
	case outcome < 0:
		return false, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	return outcome == 1, nil
}

// Durable implements sessionstore.Durable.
func (*Store) Durable() {}

// Touch implements sessionstore.Store. It takes one round trip, or two if a node does not know the script yet.
func (s *Store) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil || len(batch) == 0 {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var unknown []sessionstore.Touch
	for i, err := range s.each(ctx, batch, "evalsha", s.touch.Hash()) {
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			unknown = append(unknown, batch[i])
		} else if err != nil {
			return unavailable(err)
		}
	}
	for _, err := range s.each(ctx, unknown, "eval", touchScript) {
		if err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// each runs the script on every session of a batch in one pipeline. It returns one error per session.
func (s *Store) each(ctx context.Context, batch []sessionstore.Touch, command, script string) []error {
	if len(batch) == 0 {
		return nil
	}
	results := make([]once, len(batch))
	_, failed := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, touch := range batch {
			results[i] = once{redis.NewCmd(ctx, command, script, 1, s.prefix+touch.ID, touch.LastAccessedAt.UnixMilli(), millis(touch.TTL))}
			_ = pipe.Process(ctx, results[i]) // the pipeline reports the error
		}
		return nil
	})
	errs := make([]error, len(batch))
	for i, result := range results {
		errs[i] = result.Err()
		if errs[i] == nil && failed != nil && result.Val() == nil {
			errs[i] = failed
		}
	}
	return errs
}

// Delete implements sessionstore.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return unavailable(s.write(ctx, "del", s.prefix+id).Err())
}

// once is a write that the library must not retry when its response is lost. The write may have taken effect, and
// another write after it, which a retry would undo. A repeated Replace would report that it did not replace.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// write runs a write command without retries.
func (s *Store) write(ctx context.Context, args ...any) *redis.Cmd {
	cmd := once{redis.NewCmd(ctx, args...)}
	_ = s.client.Process(ctx, cmd) // the command has the error
	return cmd.Cmd
}

// bounded limits ctx to the configured timeout, for all attempts together.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

// millis returns a lifetime in milliseconds, the unit that Redis uses, and at least one.
func millis(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// unavailable wraps an error in plugins.ErrUnavailable. Whatever went wrong, the caller must not conclude that a session does
// not exist.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redis: %w: %w", plugins.ErrUnavailable, err)
}
