package protocoltest

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	pluginv1 "github.com/ropewalk/ropewalk/proto/ropewalk/plugin/v1"
)

// serving are promises that a plugin breaks once it serves, or when it is started a second time.
func serving() []Check {
	return []Check{
		{Name: "its health service answers SERVING while it serves", Contract: `answers SERVING for the service "plugin"`, Run: with(healthyWhileServing)},
		{Name: "it listens on nothing beside the address of its handshake line", Contract: "It listens nowhere else, neither for connections nor for datagrams", Run: with(listensNowhereElse)},
		{Name: "each start has a key of its own", Contract: "The plugin then makes a certificate of its own", Run: ownKey},
		{Name: "100 calls of the kind's own service at once are answered as one alone is", Contract: "at least 100 calls at once", Run: with(answersHundredOfItsKind)},
		{Name: "calls that were given up use nothing up", Contract: "and the plugin stops working on it", Run: with(survivesGivenUp)},
		{Name: "no error or log line repeats a token", Contract: "a message that says what was wrong and holds no secret", Run: with(repeatsNoToken)},
		{Name: "a new process takes the data directory that a killed one left", Contract: "A directory that is the plugin's alone and outlives it", Run: takesDirectoryAgain},
		{Name: "Shutdown ends a plugin that serves within two seconds", Contract: "whose Shutdown ends the process within two seconds", Run: with(shutsDownInTime)},
	}
}

// configured configures the process with the good settings.
func configured(ctx context.Context, s Subject, p *process) (pluginv1.PluginServiceClient, error) {
	service, err := p.service()
	if err != nil {
		return nil, err
	}
	problems, err := configure(ctx, service, p, s.Settings)
	if err == nil && len(problems) > 0 {
		err = kit.Failf("Configure reports problems with the settings that were given as good: %v", problems)
	}
	return service, err
}

func healthyWhileServing(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	if err := health(ctx, p, true, false, false); err != nil {
		return kit.Failf("after Configure: %w", err)
	}
	for range 5 {
		if err := callKind(ctx, s, p); err != nil {
			return err
		}
		if err := health(ctx, p, true, false, false); err != nil {
			return kit.Failf("after a call: %w", err)
		}
	}
	return nil
}

// listensNowhereElse looks for listeners beside the one of the handshake line, when the plugin serves. An adapter
// that asks for a name by DNS has a socket for datagrams, until the answer comes; so a socket counts if it
// stays.
func listensNowhereElse(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	if err := callKind(ctx, s, p); err != nil {
		return err
	}
	first, err := p.otherListeners()
	if err != nil {
		return kit.Skip("this system does not show where a process listens: %v", err)
	}
	for until := time.Now().Add(lookup); len(first) > 0; {
		again, err := p.otherListeners()
		if err != nil {
			return err
		}
		for at := range first {
			if !again[at] {
				delete(first, at)
			}
		}
		if time.Now().After(until) {
			break
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	for at := range first {
		return kit.Failf("it must listen on %s %s alone; it also listens on %s", p.fields[2], p.fields[3], at)
	}
	return nil
}

// lookup is the longest that a question about a name may have its socket open: the five seconds after which
// resolvers give up, and one more.
const lookup = 6 * time.Second

// otherListeners are the addresses that the process listens on beside that of its handshake line.
func (p *process) otherListeners() (map[string]bool, error) {
	all, err := listenersOf(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, at := range all {
		if p.fields[2] != "tcp" || at.network != "tcp" || at.TCPAddr.String() != p.fields[3] {
			others[at.String()] = true
		}
	}
	return others, nil
}

// ownKey compares the public keys of two starts: a certificate differs by its signature already.
func ownKey(ctx context.Context, s Subject) error {
	var keys []string
	for range 2 {
		p, err := s.start(ctx, "1")
		if err != nil {
			return err
		}
		p.stop()
		der, err := base64.RawStdEncoding.DecodeString(slices.Concat(p.fields, []string{""})[5])
		if err != nil {
			return kit.Failf("the certificate of the handshake line is not base64 without padding: %w", err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return kit.Failf("the certificate of the handshake line cannot be read: %w", err)
		}
		keys = append(keys, string(certificate.RawSubjectPublicKeyInfo))
	}
	if keys[0] == keys[1] {
		return kit.Failf("two starts have the same key; whoever has the plugin's file could have it too")
	}
	return nil
}

// asAlone returns an error unless a call was answered with the same status as one call alone. The backend of a
// registry may refuse many calls at once.
func (s Subject) asAlone(alone codes.Code, err error) error {
	code := status.Code(err)
	if code == alone || s.Kind == plugins.KindRegistry && code == codes.Unavailable {
		return nil
	}
	return kit.Failf("one call alone was answered with %s, this one with %s: %w", alone, code, errors.Join(err))
}

func answersHundredOfItsKind(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	call, err := p.kindCall(s)
	if err != nil {
		return err
	}
	alone := status.Code(call(ctx, "alone"))
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	errs := make([]error, 100)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.asAlone(alone, call(ctx, "one-of-many")) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return kit.Failf("of 100 calls at once: %w", err)
		}
	}
	return nil
}

// survivesGivenUp makes calls whose callers wait ever longer, but not for the answer.
func survivesGivenUp(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	call, err := p.kindCall(s)
	if err != nil {
		return err
	}
	alone := status.Code(call(ctx, "alone"))
	const ms = time.Millisecond
	for _, limit := range []time.Duration{1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms} {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				short, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				_ = call(short, "given-up")
			})
		}
		wg.Wait()
	}
	if err := health(ctx, p, true, false, false); err != nil {
		return kit.Failf("after 500 calls that were given up: %w", err)
	}
	again, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.asAlone(alone, call(again, "after")); err != nil {
		return kit.Failf("after 500 calls that were given up: %w", err)
	}
	return nil
}

// repeatsNoToken verifies tokens of several forms, none of which is good.
func repeatsNoToken(ctx context.Context, s Subject, p *process) error {
	if s.Kind != plugins.KindAuth {
		return kit.Skip("plugins of the kind %s are given no tokens", s.Kind)
	}
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	part := base64.RawURLEncoding.EncodeToString
	forged := part([]byte(`{"alg":"none"}`)) + "." + part([]byte(`{"sub":"`+canary+`"}`)) + "." + canary
	for _, token := range []string{canary, "sk_" + canary, forged} {
		_, err := authv1.NewAuthServiceClient(conn).Verify(ctx, &authv1.VerifyRequest{Token: token})
		if err == nil {
			return kit.Failf("a token that nobody gave out was accepted")
		}
		if strings.Contains(err.Error(), canary) {
			return kit.Failf("an error of Verify repeats the token")
		}
	}
	p.stop() // after which all of its output has been read
	if err := p.wroteCanary("a token, or a part of it"); err != nil {
		return kit.Failf("of what the plugin wrote to standard error: %w", err)
	}
	return nil
}

func takesDirectoryAgain(ctx context.Context, s Subject) error {
	return inOneDirectory(ctx, s, func(first *process, _ bool) error {
		if err := callKind(ctx, s, first); err != nil {
			return err
		}
		if err := killNow(ctx, first); err != nil {
			return err
		}
		if err := s.configuredIn(ctx, first.data, func(next *process) error { return callKind(ctx, s, next) }); err != nil {
			return kit.Failf("after kill -9 of a process, the next one cannot have its data directory: %w", err)
		}
		return nil
	})
}

// shutdownTimeout is the two seconds of the contract, and what a busy machine may take beside them.
const shutdownTimeout = 3500 * time.Millisecond

func shutsDownInTime(ctx context.Context, s Subject, p *process) error {
	if _, err := configured(ctx, s, p); err != nil {
		return err
	}
	if err := callKind(ctx, s, p); err != nil {
		return err
	}
	conn, err := p.dial(true, p.server)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	began := time.Now()
	_ = conn.Invoke(short, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}) // the process may be gone before it answers
	if _, gone := p.exits(shutdownTimeout - time.Since(began)); !gone {
		return kit.Failf("after Shutdown of a plugin that serves the process must end within two seconds; it still ran after %s", shutdownTimeout)
	}
	return nil
}
