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

// optionalTimeout is how long an app that is starting may take to return the lists other than its tools. The app runs
// without the lists that are not available by then.
const optionalTimeout = 5 * time.Second

// methodNotFound is the JSON-RPC error code for a list that the app does not have.
const methodNotFound = -32601

// Lister returns the lists of a running app.
type Lister interface {
	List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error)
}

// Reader reads the lists of one app.
type Reader struct {
	Server  string // the app's server name
	Headers bool   // the app also wants tool arguments in HTTP headers
	Logger  hclog.Logger
	Tools   *core.ToolFilter // the tools to keep; nil for all

	// Report is called with a sentence about each item that was left out or repaired, for the app's operator. It may be
	// nil.
	Report func(sentence string)
}

// ReadAll reads all lists of an app that is starting, concurrently. Only reading the tools may take as long as ctx
// allows. The error is set if the tools could not be read or the lists are too large; failures to read the other lists
// are only logged.
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

// ReadList reads one list into offer. The list is empty if the app does not implement the method.
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

// These are the limits on all lists of one app together.
const (
	maxEntries = 10_000
	maxBytes   = 16 << 20
)

// CheckSize returns an error if the lists of an app are too large to keep.
func CheckSize(o *core.Offer) error {
	entries, bytes := Size(o)
	if entries > maxEntries || bytes > maxBytes {
		return fmt.Errorf("the app's lists have %d entries and %d bytes; the limits are %d entries and %d bytes", entries, bytes, maxEntries, maxBytes)
	}
	return nil
}

// Size returns the size of lists, as the app sent them.
func Size(o *core.Offer) (entries, bytes int) {
	entries = len(o.Tools) + len(o.Prompts) + len(o.Resources) + len(o.Templates)
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
	return entries, bytes
}
