package interact

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ropewalk/ropewalk/core/link"
)

// NeedsOnlyShared reports whether a call is a single request to the shared instance: it belongs to no
// other instance and needs no translation between MCP revisions.
func (d *Dialog) NeedsOnlyShared(shared Instance, c *Call) bool {
	if _, pooled := d.poolKey(shared, c.Client, c.Asker); pooled || c.AsTask {
		return false
	}
	return shared.Info().Stateless == (c.Client != nil && c.Client.stateless)
}

// Do makes a call on the instance that is right for its client, which it also returns.
func (d *Dialog) Do(ctx context.Context, shared Instance, c Call, f *InFlight) (json.RawMessage, Instance, error) {
	in, release, err := d.route(ctx, shared, f)
	if err != nil {
		return nil, shared, err
	}
	defer release()
	stateless := c.Client != nil && c.Client.stateless
	if stateless && !in.Info().Stateless && mayAskForInput(c.Method) {
		result, err := d.doSuspendable(ctx, in, c)
		return result, in, err
	}
	r := link.Request{Method: c.Method, Target: c.Target, Params: c.Params, Notify: c.Notify, Sender: c.User, Caller: f, Mirrors: c.Mirrors}
	if !in.Info().Stateless || stateless {
		result, err := call(ctx, in, r, c.AsTask, f)
		return result, in, err
	}
	if c.Asker != nil && c.Client != nil {
		r.Capabilities = c.Client.capabilities
	}
	result, err := d.doWithInput(ctx, in, r, f)
	return result, in, err
}

// route picks the instance for a call: the shared one, unless the client speaks the other kind of
// MCP revision or is one that the app asks. An app that cannot run twice serves all with one instance.
func (d *Dialog) route(ctx context.Context, shared Instance, f *InFlight) (in Instance, release func(), err error) {
	keep := func() {}
	key, pooled := d.poolKey(shared, f.client, f.asker)
	if !pooled {
		return shared, keep, nil
	}
	p, release, err := d.broker.pool.acquire(ctx, key, false, f)
	switch {
	case errors.Is(err, errCannotStart) && ctx.Err() == nil:
		return shared, keep, nil
	case err != nil:
		return nil, nil, err
	case f.client.stateless && !p.instance.Info().Stateless: // it completed the handshake after all
		d.learn(func(c *bundleCapabilities) { c.onlySessions = true })
		release()
		d.broker.pool.discard(p)
		return shared, keep, nil
	}
	return p.instance, release, nil
}

// poolKey returns which instance of the session pool a call belongs to; pooled is false when it
// belongs to the shared instance.
func (d *Dialog) poolKey(shared Instance, client *Client, asker Asker) (key poolKey, pooled bool) {
	key.dialog = d
	if client == nil || shared.Info().Stateless {
		return key, false
	}
	known := d.known()
	switch {
	case client.stateless:
		return key, !known.onlySessions
	case asker != nil && client.session != "" && client.abilities&known.asks != 0:
		key.session = client.session
		return key, true
	}
	return key, false
}
