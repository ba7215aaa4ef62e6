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

// modelLength is the maximum length of provider:model, in bytes.
const modelLength = 200

// The names of the settings that store an admin's choice of models.
const (
	settingDefault = "models.default"
	settingFast    = "models.fast"
)

// Models contains the models that can be called, and their prices. It is immutable except for the context windows that
// providers report.
type Models struct {
	providers map[string]provider
	byDefault string // provider:model; "" if none is configured
	fast      string
	maxOutput int
	windows   map[string]int // configured context windows in tokens, by provider:model
	listed    *sync.Map      // context windows as listed by the providers, by provider:model; 0 if not listed
	budget    int64
	prices    model.Prices
}

type provider struct {
	calls  model.Provider
	vendor string // the vendor whose API it supports, for traces
	usable bool   // it has a key or does not need one
	at     string // base URL; "" for the vendor's own
	close  func()
}

// NewModels returns the configured models. It does not connect to any provider.
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

// Close closes idle connections.
func (m *Models) Close() {
	for _, p := range m.providers {
		p.close()
	}
}

// selected is the model that a run uses.
type selected struct {
	full     string // provider:model
	name     string // the provider's name for the model
	provider model.Provider
	vendor   string // the vendor whose API the provider supports, for traces
	origin   string // the origin of the model's answers; see model.Origin
	models   *Models
}

const listTimeout = 10 * time.Second // for fetching a provider's list of models

// window returns the size of the model's context in tokens: as configured, or else as listed by its provider. The
// list is requested once. The result is 0 if the size is unknown.
func (s selected) window(ctx context.Context) int {
	if n := s.models.windows[s.full]; n > 0 {
		return n
	}
	if n, known := s.models.listed.Load(s.full); known {
		return n.(int) //nolint:forcetypeassert // the map contains nothing else
	}
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	n := s.provider.Window(limited, s.name)
	if ctx.Err() == nil {
		s.models.listed.Store(s.full, n)
	}
	return n
}

// find returns the model with a full name, provider:model. The error is core.CodeBadRequest for an invalid name or an
// unknown provider, and core.CodeModelNotConfigured if the provider has no key.
func (m *Models) find(full string) (selected, error) {
	name, of, ok := strings.Cut(full, ":")
	p, known := m.providers[name]
	switch {
	case !ok || of == "" || len(full) > modelLength || strings.ContainsFunc(full, unicode.IsControl):
		return selected{}, core.Errorf(core.CodeBadRequest, "model must be of the form provider:model, such as anthropic:claude-sonnet-5")
	case !known:
		return selected{}, core.Errorf(core.CodeBadRequest, "model refers to the provider %q, which does not exist; the providers are %s", name, strings.Join(slices.Sorted(maps.Keys(m.providers)), ", "))
	case !p.usable:
		return selected{}, core.Errorf(core.CodeModelNotConfigured,
			"the model provider %q has no key; set models.providers.%s.apiKey%s", name, name, environmentHint(name))
	}
	return selected{full: full, name: of, provider: p.calls, vendor: p.vendor, origin: model.Origin(full, p.at), models: m}, nil
}

func environmentHint(name string) string {
	if env := config.ProviderKeys()[name]; env != "" {
		return " or the environment variable " + env
	}
	return ""
}

// selectModel returns the requested model, or the current default if asked is "".
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
			"no model is configured; set models.default to provider:model, such as anthropic:claude-sonnet-5, and the provider's key "+
				"(ANTHROPIC_API_KEY, OPENAI_API_KEY, or models.providers.<name>.apiKey)")
	}
	return notRequested(m.find(current))
}

// selectFastModel returns the model for small background tasks: the fast model, or the default if there is none.
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

// notRequested rewords the error for a model that does not come from a request but from a setting.
func notRequested(c selected, err error) (selected, error) {
	if err != nil && core.CodeOf(err) == core.CodeBadRequest {
		err = core.Errorf(core.CodeModelNotConfigured, "models.default and models.fast: %w", err)
	}
	return c, err
}

// currentModel returns the model that an admin has set, or else the configured one.
func (e *Engine) currentModel(ctx context.Context, setting, configured string) (string, error) {
	chosen, err := e.store.Setting(ctx, setting)
	if core.CodeOf(err) == core.CodeNotFound {
		chosen, err = "", nil
	}
	return cmp.Or(chosen, configured), err
}

// Model returns the current default model as provider:model. The error is core.CodeModelNotConfigured if none is
// configured, or if its provider is unknown or has no key.
func (e *Engine) Model(ctx context.Context) (string, error) {
	c, err := e.selectModel(ctx, "")
	if err != nil {
		return "", err
	}
	return c.full, nil
}
