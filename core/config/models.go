package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

// The APIs of model providers.
const (
	ProviderAnthropic = "anthropic"
	ProviderOpenAI    = "openai" // and everything compatible with it
)

// Models configures which models the chat uses, and where they are.
type Models struct {
	Default         string                   // provider:model; "" if none is set, which disables chat
	Fast            string                   // provider:model for titles; "" means Default
	Providers       map[string]ModelProvider // always includes anthropic and openai
	MaxOutputTokens int                      // tokens in one answer
	ContextWindows  map[string]int           // tokens in a model's context window, by provider:model
	TokenBudget     int                      // tokens for one run, over all its calls; 0 means no limit
	Prices          string                   // a file whose prices override the built-in ones, absolute; "" for none
	Proxy           Proxy
}

// Proxy configures how models at https addresses are reached, in the format that curl understands.
type Proxy struct {
	URL     core.Secret // may contain a password; "" connects directly
	NoProxy string      // hosts to connect to directly, as in NO_PROXY
}

// ModelProvider is one provider of models.
type ModelProvider struct {
	Type    string // ProviderAnthropic or ProviderOpenAI
	BaseURL string // without a trailing slash; "" means the vendor's own
	APIKey  core.Secret
}

// Host returns the proxy's host and port for the log, or "".
func (p Proxy) Host() string {
	address := p.URL.Reveal()
	if address == "" {
		return ""
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address // as curl accepts it
	}
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return at.Host
}

// Skills configures where to find skills in addition to <home>/skills.
type Skills struct {
	Directories []string // absolute
}

// ProviderKeys returns the environment variables that contain the keys of the vendors' own providers.
func ProviderKeys() map[string]string {
	return map[string]string{ProviderAnthropic: EnvAnthropicKey, ProviderOpenAI: EnvOpenAIKey}
}

// ProviderURLs returns the environment variables that contain the base URLs of the vendors' own providers.
func ProviderURLs() map[string]string {
	return map[string]string{ProviderAnthropic: EnvAnthropicURL, ProviderOpenAI: EnvOpenAIURL}
}

// modelsSection is Models as written in the file.
type modelsSection struct {
	Models
	Proxy string
}

// models builds the section. The vendors' own providers are always included; their keys come from the
// environment unless the file sets one.
func (s modelsSection) models(base string, env Environment) Models {
	m := s.Models
	m.Providers, m.Proxy = map[string]ModelProvider{}, s.proxy(env)
	if s.Prices != "" {
		m.Prices = absolute(base, s.Prices)
	}
	for name := range ProviderKeys() {
		m.Providers[name] = ModelProvider{Type: name}
	}
	for name, p := range s.Providers {
		if p.Type == "" {
			p.Type = name // anthropic or openai; the check rejects anything else
		}
		p.BaseURL = strings.TrimRight(p.BaseURL, "/")
		m.Providers[name] = p
	}
	for name, variable := range ProviderKeys() {
		if p := m.Providers[name]; p.APIKey == "" {
			p.APIKey = core.Secret(env[variable])
			m.Providers[name] = p
		}
	}
	for name, variable := range ProviderURLs() {
		if p := m.Providers[name]; p.BaseURL == "" {
			p.BaseURL = strings.TrimRight(env[variable], "/")
			m.Providers[name] = p
		}
	}
	return m
}

func (s modelsSection) proxy(env Environment) Proxy {
	switch s.Proxy {
	case "none":
		return Proxy{}
	case "environment":
		return Proxy{
			URL:     core.Secret(cmp.Or(env["HTTPS_PROXY"], env["https_proxy"])),
			NoProxy: cmp.Or(env["NO_PROXY"], env["no_proxy"]),
		}
	}
	return Proxy{URL: core.Secret(s.Proxy)}
}

func (k *check) checkModels() {
	m := k.cfg.Models
	for _, name := range slices.Sorted(maps.Keys(m.Providers)) {
		p, at := m.Providers[name], "models.providers."+name
		if p.Type != ProviderAnthropic && p.Type != ProviderOpenAI {
			k.addUnless(at, []string{at + ".type"}, "type is missing; it must be %s or %s, the API that the provider supports", ProviderAnthropic, ProviderOpenAI)
		}
		if p.BaseURL == "" {
			if name != p.Type {
				k.add(at, "baseUrl is missing; only the providers %s and %s have a built-in address", ProviderAnthropic, ProviderOpenAI)
			}
			continue
		}
		if _, err := webAddress(p.BaseURL); err != nil {
			k.add(at+".baseUrl", "must be an address such as http://127.0.0.1:11434/v1%s: %v", orVariable(name), err)
		}
	}
	if m.Proxy.URL != "" && m.Proxy.Host() == "" {
		k.add("models.proxy", "must be none or an address such as http://proxy.example:3128; if it is environment, HTTPS_PROXY must be such an address")
	}
	for _, chosen := range m.chosen() {
		name, of, ok := strings.Cut(chosen.model, ":")
		switch {
		case !ok || name == "" || of == "":
			k.add(chosen.at, "must be provider:model, such as anthropic:claude-sonnet-5")
		case m.Providers[name].Type == "":
			k.add(chosen.at, "there is no provider %s%s", k.shown(chosen.at, name), schema.Nearest(name, slices.Sorted(maps.Keys(m.Providers))))
		}
	}
	for _, name := range m.WithoutKey() {
		k.warn("%s", m.KeyWarning(name))
	}
}

// choice is a setting that names a model.
type choice struct{ at, model string }

// chosen returns the settings that name a model.
func (m Models) chosen() []choice {
	all := []choice{{"models.default", m.Default}, {"models.fast", m.Fast}}
	return slices.DeleteFunc(all, func(c choice) bool { return c.model == "" })
}

// WithoutKey returns the providers named in models.default and models.fast that need a key but have none.
func (m Models) WithoutKey() []string {
	var names []string
	for _, c := range m.chosen() {
		name, _, _ := strings.Cut(c.model, ":")
		if p := m.Providers[name]; p.Type != "" && p.APIKey == "" && p.BaseURL == "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// KeyWarning describes which settings name a provider without a key, and where to set its key.
func (m Models) KeyWarning(provider string) string {
	var settings []string
	for _, c := range m.chosen() {
		if strings.HasPrefix(c.model, provider+":") {
			settings = append(settings, c.at)
		}
	}
	verb := " names"
	if len(settings) > 1 {
		verb = " name"
	}
	return fmt.Sprintf("%s%s the provider %s, which has no key; set models.providers.%s.apiKey or the environment variable %s",
		strings.Join(settings, " and "), verb, provider, provider, ProviderKeys()[provider])
}

// orVariable returns a reference to the environment variable that may have set a provider's base URL.
func orVariable(provider string) string {
	if variable := ProviderURLs()[provider]; variable != "" {
		return ", here or in " + variable
	}
	return ""
}
