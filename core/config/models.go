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

// Models says which models the chat asks, and where they are.
type Models struct {
	Default         string                   // provider:model; "" when none is set, and chatting is off
	Fast            string                   // provider:model for titles; "" means Default
	Providers       map[string]ModelProvider // anthropic and openai are always among them
	MaxOutputTokens int                      // of one answer of a model
	TokenBudget     int                      // of one run, all its calls together; 0 means no limit
	Prices          string                   // a file whose prices go over the built-in ones, absolute; "" when there is none
	Proxy           Proxy
}

// Proxy is how models at https addresses are reached, as the program curl understands it.
type Proxy struct {
	URL     core.Secret // it may hold a password; "" reaches all of them directly
	NoProxy string      // hosts that are reached directly, as in NO_PROXY
}

// ModelProvider is one provider of models.
type ModelProvider struct {
	Type    string // ProviderAnthropic or ProviderOpenAI
	BaseURL string // without a trailing slash; "" means the vendor's own
	APIKey  core.Secret
}

// Host is the proxy's host and port, for the log; "" when there is none.
func (p Proxy) Host() string {
	address := p.URL.Reveal()
	if address == "" {
		return ""
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address // as curl takes it
	}
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return at.Host
}

// Skills says where skills are found beside <home>/skills.
type Skills struct {
	Directories []string // absolute
}

// ProviderKeys names the environment variables that hold the keys of the vendors' own providers.
func ProviderKeys() map[string]string {
	return map[string]string{ProviderAnthropic: EnvAnthropicKey, ProviderOpenAI: EnvOpenAIKey}
}

// ProviderURLs names the environment variables that hold the base URLs of the vendors' own providers.
func ProviderURLs() map[string]string {
	return map[string]string{ProviderAnthropic: EnvAnthropicURL, ProviderOpenAI: EnvOpenAIURL}
}

type modelsSection struct {
	Default         string                     `json:"default"`
	Fast            string                     `json:"fast"`
	MaxOutputTokens int                        `json:"maxOutputTokens"`
	TokenBudget     int                        `json:"tokenBudget"`
	Prices          string                     `json:"prices"`
	Proxy           string                     `json:"proxy"`
	Providers       map[string]providerSection `json:"providers"`
}

type providerSection struct {
	Type    string `json:"type"`
	BaseURL string `json:"baseUrl"`
	APIKey  string `json:"apiKey"`
}

type skillsSection struct {
	Directories []string `json:"directories"`
}

// models builds the section. The vendors' own providers are there without being named; their keys
// come from the environment unless the file has one.
func (s modelsSection) models(base string, env Environment) Models {
	m := Models{
		Default: s.Default, Fast: s.Fast, MaxOutputTokens: s.MaxOutputTokens, TokenBudget: s.TokenBudget,
		Providers: map[string]ModelProvider{}, Proxy: s.proxy(env),
	}
	if s.Prices != "" {
		m.Prices = absolute(base, s.Prices)
	}
	for name := range ProviderKeys() {
		m.Providers[name] = ModelProvider{Type: name}
	}
	for name, p := range s.Providers {
		if p.Type == "" {
			p.Type = name // anthropic or openai, else the check refuses it
		}
		m.Providers[name] = ModelProvider{Type: p.Type, BaseURL: strings.TrimRight(p.BaseURL, "/"), APIKey: core.Secret(p.APIKey)}
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

func (s skillsSection) skills(base string) Skills {
	var out Skills
	for _, dir := range s.Directories {
		out.Directories = append(out.Directories, absolute(base, dir))
	}
	return out
}

func (k *check) checkModels() {
	m := k.cfg.Models
	for _, name := range slices.Sorted(maps.Keys(m.Providers)) {
		p, at := m.Providers[name], "models.providers."+name
		if p.Type != ProviderAnthropic && p.Type != ProviderOpenAI {
			k.addUnless(at, []string{at + ".type"}, "type is missing: %s or %s, the API that the provider has", ProviderAnthropic, ProviderOpenAI)
		}
		if p.BaseURL == "" {
			if name != p.Type {
				k.add(at, "baseUrl is missing: only the providers %s and %s have an address of their own", ProviderAnthropic, ProviderOpenAI)
			}
			continue
		}
		if _, err := webAddress(p.BaseURL); err != nil {
			k.add(at+".baseUrl", "want an address such as http://127.0.0.1:11434/v1%s: %v", orVariable(name), err)
		}
	}
	if m.Proxy.URL != "" && m.Proxy.Host() == "" {
		k.add("models.proxy", "is not an address, or HTTPS_PROXY is not; want one such as http://proxy.example:3128, or none")
	}
	for _, chosen := range m.chosen() {
		name, of, ok := strings.Cut(chosen.model, ":")
		switch {
		case !ok || name == "" || of == "":
			k.add(chosen.at, "want provider:model, such as anthropic:claude-sonnet-5")
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

// WithoutKey returns the providers that models.default and models.fast name and that need a key and have none.
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

// KeyWarning says which settings name a provider without a key, and where its key is set.
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
	return fmt.Sprintf("%s%s the provider %s, which has no key: set models.providers.%s.apiKey or the environment variable %s",
		strings.Join(settings, " and "), verb, provider, provider, ProviderKeys()[provider])
}

// orVariable names the environment variable that may have set the base URL of a provider.
func orVariable(provider string) string {
	if variable := ProviderURLs()[provider]; variable != "" {
		return ", here or in " + variable
	}
	return ""
}
