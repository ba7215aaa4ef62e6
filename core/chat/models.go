package chat

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpproxy"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/anthropic"
	"github.com/ropewalk/ropewalk/core/chat/model/openai"
	"github.com/ropewalk/ropewalk/core/chat/price"
	"github.com/ropewalk/ropewalk/core/config"
)

// modelLength is how long provider:model may be, bytes.
const modelLength = 200

// The names under which an admin's choice of models is kept.
const (
	settingDefault = "models.default"
	settingFast    = "models.fast"
)

// Models is the models that may be asked, with what they cost. It does not change.
type Models struct {
	providers map[string]provider
	byDefault string // provider:model; "" when none is configured
	fast      string
	maxOutput int
	budget    int64
	prices    price.Table
}

type provider struct {
	calls  model.Provider
	usable bool // it has a key, or needs none
	close  func()
}

// NewModels returns the configured models. It connects to nothing.
func NewModels(c config.Models) (*Models, error) {
	prices, err := price.Load(c.Prices)
	if err != nil {
		return nil, err
	}
	m := &Models{
		providers: map[string]provider{}, byDefault: c.Default, fast: c.Fast,
		maxOutput: c.MaxOutputTokens, budget: int64(c.TokenBudget), prices: prices,
	}
	proxy := httpproxy.Config{HTTPSProxy: c.Proxy.URL.Reveal(), NoProxy: c.Proxy.NoProxy}
	for name, p := range c.Providers {
		s := model.Settings{BaseURL: p.BaseURL, APIKey: p.APIKey.Reveal(), Proxy: proxy.ProxyFunc()}
		one := provider{usable: p.BaseURL != "" || p.APIKey != ""}
		switch p.Type {
		case config.ProviderAnthropic:
			a := anthropic.New(s)
			one.calls, one.close = a, a.Close
		default:
			o := openai.New(s)
			one.calls, one.close = o, o.Close
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

// chosen is one model that a run asks.
type chosen struct {
	full   string // provider:model
	name   string // the provider's name of it
	calls  model.Provider
	models *Models
}

// find returns the model of that full name; core.CodeBadRequest when there is no such provider,
// core.CodeModelNotConfigured when it has no key.
func (m *Models) find(full string) (chosen, error) {
	name, of, ok := strings.Cut(full, ":")
	p, known := m.providers[name]
	switch {
	case !ok || of == "" || len(full) > modelLength || strings.ContainsFunc(full, unicode.IsControl):
		return chosen{}, core.Errorf(core.CodeBadRequest, "model must be of the form provider:model, such as anthropic:claude-sonnet-4-5")
	case !known:
		return chosen{}, core.Errorf(core.CodeBadRequest, "model: there is no provider %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(m.providers)), ", "))
	case !p.usable:
		return chosen{}, core.Errorf(core.CodeModelNotConfigured,
			"the model provider %s has no key: set models.providers.%s.apiKey%s", name, name, environmentHint(name))
	}
	return chosen{full: full, name: of, calls: p.calls, models: m}, nil
}

func environmentHint(name string) string {
	if env := config.ProviderKeys()[name]; env != "" {
		return " or the environment variable " + env
	}
	return ""
}

// choose returns the model that was asked for, else the one in force by default.
func (e *Engine) choose(ctx context.Context, asked string) (chosen, error) {
	m := e.models.Load()
	if asked != "" {
		return m.find(asked)
	}
	inForce, err := e.inForce(ctx, settingDefault, m.byDefault)
	if err != nil {
		return chosen{}, err
	}
	if inForce == "" {
		return chosen{}, core.Errorf(core.CodeModelNotConfigured,
			"no model is configured: set models.default to provider:model, such as anthropic:claude-sonnet-4-5, and the provider's key "+
				"(ANTHROPIC_API_KEY, OPENAI_API_KEY, or models.providers.<name>.apiKey)")
	}
	return inUse(m.find(inForce))
}

// chooseFast returns the model for what is said behind a person's back.
func (e *Engine) chooseFast(ctx context.Context) (chosen, error) {
	m := e.models.Load()
	inForce, err := e.inForce(ctx, settingFast, m.fast)
	if err != nil || inForce == "" {
		if err != nil {
			return chosen{}, err
		}
		return e.choose(ctx, "")
	}
	return inUse(m.find(inForce))
}

// inUse words the failure of a model that nobody asked for by name.
func inUse(c chosen, err error) (chosen, error) {
	if err != nil && core.CodeOf(err) == core.CodeBadRequest {
		err = core.Errorf(core.CodeModelNotConfigured, "models.default and models.fast: %w", err)
	}
	return c, err
}

// inForce is what an admin chose, else what the configuration says.
func (e *Engine) inForce(ctx context.Context, setting, configured string) (string, error) {
	chosen, err := e.store.Setting(ctx, setting)
	if core.CodeOf(err) == core.CodeNotFound {
		chosen, err = "", nil
	}
	return cmp.Or(chosen, configured), err
}

// Model is the model in force, "" when none can be asked.
func (e *Engine) Model(ctx context.Context) string {
	c, err := e.choose(ctx, "")
	if err != nil {
		return ""
	}
	return c.full
}
