package chat

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/net/http/httpproxy"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/anthropic"
	"github.com/ropewalk/ropewalk/core/chat/model/openai"

	"github.com/ropewalk/ropewalk/core/config"
)

// modelLength is how long provider:model may be, bytes.
const modelLength = 200

// The names of the settings in which an admin's choice of models is stored.
const (
	settingDefault = "models.default"
	settingFast    = "models.fast"
)

// Models is the models that may be asked, and what they cost. It is immutable, but for what providers say of their models.
type Models struct {
	providers map[string]provider
	byDefault string // provider:model; "" when none is configured
	fast      string
	maxOutput int
	windows   map[string]int // tokens that a model's context holds, by provider:model
	listed    *sync.Map      // the same as providers list them; 0 for models of which they do not say it
	budget    int64
	prices    model.Prices
}

type provider struct {
	calls  model.Provider
	vendor string // whose API it speaks, for traces
	usable bool   // it has a key, or needs none
	at     string // its address, "" for the vendor's own
	close  func()
}

// NewModels returns the configured models. It connects to nothing.
func NewModels(c config.Models) (*Models, error) {
	prices, err := model.LoadPrices(c.Prices)
	if err != nil {
		return nil, err
	}
	m := &Models{
		providers: map[string]provider{}, byDefault: c.Default, fast: c.Fast,
		maxOutput: c.MaxOutputTokens, windows: c.ContextWindows, listed: &sync.Map{}, budget: int64(c.TokenBudget), prices: prices,
	}
	proxy := httpproxy.Config{HTTPSProxy: c.Proxy.URL.Reveal(), NoProxy: c.Proxy.NoProxy}
	for name, p := range c.Providers {
		s := model.Settings{BaseURL: p.BaseURL, APIKey: p.APIKey.Reveal(), Proxy: proxy.ProxyFunc()}
		one := provider{vendor: p.Type, at: p.BaseURL, usable: p.BaseURL != "" || p.APIKey != ""}
		switch p.Type {
		case config.ProviderAnthropic:
			a := anthropic.New(s)
			one.calls, one.close = model.WithoutKey(a, s.APIKey), a.Close
		default:
			o := openai.New(s)
			one.calls, one.close = model.WithoutKey(o, s.APIKey), o.Close
		}
		m.providers[name] = one
	}
	return m, nil
}

// Close ends the connections that no call uses.
func (m *Models) Close() {
	for _, p := range m.providers {
		p.close()
	}
}

// selected is the model that a run asks.
type selected struct {
	full     string // provider:model
	name     string // the provider's name of it
	provider model.Provider
	vendor   string // whose API the provider speaks, for traces
	origin   string // of what it says
	models   *Models
}

const listTimeout = 10 * time.Second // for a provider's list of models

// window is how many tokens the context of the model holds: as configured, or else as its provider lists it, which is asked
// once. 0 when that is not known.
func (s selected) window(ctx context.Context) int {
	if n := s.models.windows[s.full]; n > 0 {
		return n
	}
	if n, known := s.models.listed.Load(s.full); known {
		return n.(int) //nolint:forcetypeassert // the map has nothing else
	}
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	n := s.provider.Window(limited, s.name)
	if ctx.Err() == nil {
		s.models.listed.Store(s.full, n)
	}
	return n
}

// find returns the model of that full name; core.CodeBadRequest when there is no such provider,
// core.CodeModelNotConfigured when it has no key.
func (m *Models) find(full string) (selected, error) {
	name, of, ok := strings.Cut(full, ":")
	p, known := m.providers[name]
	switch {
	case !ok || of == "" || len(full) > modelLength || strings.ContainsFunc(full, unicode.IsControl):
		return selected{}, core.Errorf(core.CodeBadRequest, "model must be of the form provider:model, such as anthropic:claude-sonnet-5")
	case !known:
		return selected{}, core.Errorf(core.CodeBadRequest, "model: there is no provider %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(m.providers)), ", "))
	case !p.usable:
		return selected{}, core.Errorf(core.CodeModelNotConfigured,
			"the model provider %s has no key: set models.providers.%s.apiKey%s", name, name, environmentHint(name))
	}
	return selected{full: full, name: of, provider: p.calls, vendor: p.vendor, origin: model.Origin(full, p.at), models: m}, nil
}

func environmentHint(name string) string {
	if env := config.ProviderKeys()[name]; env != "" {
		return " or the environment variable " + env
	}
	return ""
}

// selectModel returns the requested model, otherwise the current default.
func (e *Engine) selectModel(ctx context.Context, asked string) (selected, error) {
	m := e.models.Load()
	if asked != "" {
		return m.find(asked)
	}
	current, err := e.currentModel(ctx, settingDefault, m.byDefault)
	if err != nil {
		return selected{}, err
	}
	if current == "" {
		return selected{}, core.Errorf(core.CodeModelNotConfigured,
			"no model is configured: set models.default to provider:model, such as anthropic:claude-sonnet-5, and the provider's key "+
				"(ANTHROPIC_API_KEY, OPENAI_API_KEY, or models.providers.<name>.apiKey)")
	}
	return notRequested(m.find(current))
}

// selectFastModel returns the model for small background work.
func (e *Engine) selectFastModel(ctx context.Context) (selected, error) {
	m := e.models.Load()
	current, err := e.currentModel(ctx, settingFast, m.fast)
	if err != nil || current == "" {
		if err != nil {
			return selected{}, err
		}
		return e.selectModel(ctx, "")
	}
	return notRequested(m.find(current))
}

// notRequested rewords the error about a model that no request named.
func notRequested(c selected, err error) (selected, error) {
	if err != nil && core.CodeOf(err) == core.CodeBadRequest {
		err = core.Errorf(core.CodeModelNotConfigured, "models.default and models.fast: %w", err)
	}
	return c, err
}

// currentModel is what an admin set, otherwise what is configured.
func (e *Engine) currentModel(ctx context.Context, setting, configured string) (string, error) {
	chosen, err := e.store.Setting(ctx, setting)
	if core.CodeOf(err) == core.CodeNotFound {
		chosen, err = "", nil
	}
	return cmp.Or(chosen, configured), err
}

// Model returns the current default model, provider:model. The error says why none can be asked;
// core.CodeModelNotConfigured when none is configured, or its provider is unknown or has no key.
func (e *Engine) Model(ctx context.Context) (string, error) {
	c, err := e.selectModel(ctx, "")
	if err != nil {
		return "", err
	}
	return c.full, nil
}
