package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

const (
	smallPayload = 200
	largePayload = 64 << 10
	manyTools    = "300"
	manyOthers   = 499
	workspace    = core.DefaultWorkspaceID
)

// The bundles, as arguments for this executable.
var (
	sdkBundle   = []string{"rival", "bundle"}
	manyBundle  = []string{"rival", "bundle", "--tools", manyTools}
	lightBundle = []string{"rival", "light"}
)

// speed measures tools/call with the SDK bundle and with the light bundle.
func (b *bench) speed(ctx context.Context) error {
	direct, err1 := b.rival(ctx, "direct", "rival", "direct")
	relay, err2 := b.rival(ctx, "relay", append([]string{"rival", "relay"}, sdkBundle...)...)
	gateway, err3 := b.rival(ctx, "SDK gateway", append([]string{"rival", "gateway"}, sdkBundle...)...)
	ours, err4 := b.service(ctx, service{name: "sdk", bundle: sdkBundle}, "")
	if err := firstOf(err1, err2, err3, err4); err != nil {
		return err
	}
	ofDirect, ofRelay := map[int]float64{1: 0.85, 16: 1.3, 64: 1.3}, map[int]float64{1: 1, 16: 1.05, 64: 1}
	for _, c := range []int{1, 16, 64} {
		got, err := b.race(ctx, fmt.Sprintf("call c=%d", c), load.Plan{Kind: load.Calls, Concurrency: c}, direct, relay, gateway, ours)
		if err != nil {
			return err
		}
		b.compareRates(fmt.Sprintf("calls/s against the direct server, c=%d", c), ofDirect[c], got[3], got[0])
		b.compareRates(fmt.Sprintf("calls/s against the bare relay, c=%d", c), ofRelay[c], got[3], got[1])
		if c == 16 {
			b.compareCPU("gateway CPU per call against the bare relay, c=16", 0.9, got[3], got[1])
		}
	}
	if err := b.large(ctx, "SDK bundle", gateway, relay, ours); err != nil {
		return err
	}
	got, err := b.race(ctx, "open, call, close c=16", load.Plan{Kind: load.Cycles, Concurrency: 16}, direct, ours)
	if err != nil {
		return err
	}
	b.compareRates("open, call, close against the direct server, c=16", 1.3, got[1], got[0])
	return b.light(ctx)
}

// light measures differences that only show with a fast bundle.
func (b *bench) light(ctx context.Context) error {
	relay, err1 := b.rival(ctx, "relay, light bundle", append([]string{"rival", "relay"}, lightBundle...)...)
	gateway, err2 := b.rival(ctx, "SDK gateway, light bundle", append([]string{"rival", "gateway"}, lightBundle...)...)
	ours, err3 := b.service(ctx, service{name: "light", bundle: lightBundle}, "")
	if err := firstOf(err1, err2, err3); err != nil {
		return err
	}
	got, err := b.race(ctx, "call c=16, light bundle", load.Plan{Kind: load.Calls, Concurrency: 16}, relay, ours)
	if err != nil {
		return err
	}
	b.compareRates("calls/s against the bare relay, light bundle, c=16", 1.2, got[1], got[0])
	return b.large(ctx, "light bundle", gateway, relay, ours)
}

// large measures tools/call with arguments of 64 KB. With a slow bundle, most of the time is spent in the
// bundle, and no gateway can be faster than the relay.
func (b *bench) large(ctx context.Context, bundle string, gateway, relay, ours contestant) error {
	cs := []contestant{gateway, relay, ours}
	for i := range cs {
		cs[i].target = cs[i].target.Padded(largePayload)
	}
	got, err := b.race(ctx, "call 64 KB c=16, "+bundle, load.Plan{Kind: load.Calls, Concurrency: 16}, cs...)
	if err == nil {
		b.compareRates("64 KB payloads against the SDK gateway, "+bundle+", c=16", 3, got[2], got[0])
		b.compareRates("64 KB payloads against the bare relay, "+bundle+", c=16", 1, got[2], got[1])
	}
	return err
}

// tokens measures the cost of bearer tokens.
func (b *bench) tokens(ctx context.Context) error {
	return b.withProvider(ctx, func(auth map[string]any, token string) error {
		with, err1 := b.service(ctx, service{name: "oidc", bundle: sdkBundle, auth: auth}, token)
		without, err2 := b.service(ctx, service{name: "dev", bundle: sdkBundle}, "")
		if err := firstOf(err1, err2); err != nil {
			return err
		}
		got, err := b.race(ctx, "call c=16, oidc bearer", load.Plan{Kind: load.Calls, Concurrency: 16}, with, without)
		if err == nil {
			b.compareRates("oidc bearer on each call, against none, c=16", 0.95, got[0], got[1])
		}
		return err
	})
}

// withProvider runs measure while an identity provider is running. measure gets the matching auth section, and
// an owner's token.
func (b *bench) withProvider(ctx context.Context, measure func(auth map[string]any, token string) error) error {
	keys, err := authtest.NewKeys()
	if err != nil {
		return err
	}
	provider, err := authtest.NewProvider(keys)
	if err != nil {
		return err
	}
	defer provider.Close()
	token := provider.Token(map[string]any{"exp": time.Now().Add(time.Hour).Unix(), "role": "owner"})
	return errors.Join(ctx.Err(), measure(map[string]any{
		"adapter": "oidc", "issuer": provider.Issuer(), "audience": provider.Audience, "roleClaim": "role",
	}, token))
}

// lists measures tools/list with 300 tools.
func (b *bench) lists(ctx context.Context) error {
	direct, err1 := b.rival(ctx, "direct, 300 tools", "rival", "direct", "--tools", manyTools)
	ours, err2 := b.service(ctx, service{name: "many", bundle: manyBundle}, "")
	if err := firstOf(err1, err2); err != nil {
		return err
	}
	got, err := b.race(ctx, "list c=16, 300 tools", load.Plan{Kind: load.Lists, Concurrency: 16}, direct, ours)
	if err == nil {
		b.compareRates("tools/list, 300 tools, against the direct server, c=16", 3, got[1], got[0])
	}
	return err
}

// crowd measures the cost of other workspaces.
func (b *bench) crowd(ctx context.Context) error {
	alone, err1 := b.service(ctx, service{name: "alone", bundle: sdkBundle}, "")
	crowded, err2 := b.service(ctx, service{name: "crowded", bundle: sdkBundle, workspaces: manyOthers}, "")
	if err := firstOf(err1, err2); err != nil {
		return err
	}
	got, err := b.race(ctx, "call c=16, 500 workspaces", load.Plan{Kind: load.Calls, Concurrency: 16}, alone, crowded)
	if err == nil {
		b.compareRates("500 workspaces, each with an app configured, against 1, c=16", 0.95, got[1], got[0])
	}
	return err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
