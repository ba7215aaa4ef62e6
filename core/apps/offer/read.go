package offer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// optionalTimeout is how long an app that starts may take for the lists besides its tools. It runs
// without those that it did not give by then.
const optionalTimeout = 5 * time.Second

// methodNotFound is the JSON-RPC error code of an app without the list that it is asked for.
const methodNotFound = -32601

// Lister gives the lists of a running app.
type Lister interface {
	List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error)
}

// Reader reads the lists of one app.
type Reader struct {
	Server  string // the app's short name
	Headers bool   // the app wants arguments of tools in HTTP headers as well
	Logger  hclog.Logger

	// Report is called with a sentence about each item that was left out or made valid, for whoever runs the app. It
	// can be nil.
	Report func(sentence string)
}

// ReadAll reads all lists of an app that starts, at the same time. Only the tools are waited for as
// long as ctx lasts, and only a failure to read them is an error.
func (r Reader) ReadAll(ctx context.Context, app Lister) (core.Offer, error) {
	optional, cancel := context.WithTimeout(ctx, optionalTimeout)
	defer cancel()
	var offer core.Offer
	var reading sync.WaitGroup
	for _, kind := range []core.Kind{core.KindPrompts, core.KindResources, core.KindTemplates} {
		reading.Go(func() {
			if err := r.ReadList(optional, app, kind, &offer); err != nil && ctx.Err() == nil {
				r.Logger.Warn("app runs without a list that could not be read", "list", kind, "error", err)
			}
		})
	}
	err := r.ReadList(ctx, app, core.KindTools, &offer)
	if err != nil {
		cancel()
	}
	reading.Wait()
	if err == nil {
		err = CheckSize(&offer)
	}
	return offer, err
}

// ReadList reads one list into offer. The list is empty when the app does not know the method.
func (r Reader) ReadList(ctx context.Context, app Lister, kind core.Kind, offer *core.Offer) error {
	raws, err := app.List(ctx, kind)
	if rpcErr, ok := errors.AsType[*rpc.Error](err); ok && rpcErr.Code == methodNotFound {
		raws, err = nil, nil
	}
	if err != nil {
		return err
	}
	switch kind {
	case core.KindTools:
		offer.Tools = r.parseTools(raws)
	case core.KindPrompts:
		offer.Prompts = parseList(r, raws, kind, func(raw json.RawMessage) (core.Prompt, string, error) { return parsePrompt(raw, r.Server) })
	case core.KindResources:
		offer.Resources = parseList(r, raws, kind, func(raw json.RawMessage) (core.Resource, string, error) { return parseResource(raw, r.Server) })
	case core.KindTemplates:
		offer.Templates = parseList(r, raws, kind, func(raw json.RawMessage) (core.ResourceTemplate, string, error) { return parseTemplate(raw, r.Server) })
	}
	return nil
}

// The most that all lists of one app may hold together.
const (
	maxEntries = 10_000
	maxBytes   = 16 << 20
)

// CheckSize returns an error when the lists of an app are too large to be kept.
func CheckSize(o *core.Offer) error {
	entries := len(o.Tools) + len(o.Prompts) + len(o.Resources) + len(o.Templates)
	bytes := 0
	for i := range o.Tools {
		bytes += len(o.Tools[i].Raw)
	}
	for i := range o.Prompts {
		bytes += len(o.Prompts[i].Raw)
	}
	for i := range o.Resources {
		bytes += len(o.Resources[i].Raw)
	}
	for i := range o.Templates {
		bytes += len(o.Templates[i].Raw)
	}
	if entries > maxEntries || bytes > maxBytes {
		return fmt.Errorf("the app's lists have %d entries and %d bytes; at most %d entries and %d bytes are kept", entries, bytes, maxEntries, maxBytes)
	}
	return nil
}
