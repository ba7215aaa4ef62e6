package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestModelsAreReadWithTheirProviders(t *testing.T) {
	c := mustLoad(t, `models:
  default: local:qwen3
  fast: anthropic:claude-haiku-4-5
  prices: prices.json
  providers:
    local: {type: openai, baseUrl: "http://127.0.0.1:11434/v1/"}
    anthropic: {apiKey: "of the file"}
skills: {directories: [more, /abs]}
`, Environment{"ANTHROPIC_API_KEY": "from the environment", "OPENAI_API_KEY": "sk-env"})
	base := filepath.Dir(c.File)
	equal(t, "models.default", c.Models.Default, "local:qwen3")
	equal(t, "models.fast", c.Models.Fast, "anthropic:claude-haiku-4-5")
	equal(t, "models.prices", c.Models.Prices, filepath.Join(base, "prices.json"))
	equal(t, "local", c.Models.Providers["local"], ModelProvider{Type: ProviderOpenAI, BaseURL: "http://127.0.0.1:11434/v1"})
	equal(t, "the file's key takes precedence over the environment's", c.Models.Providers["anthropic"], ModelProvider{Type: ProviderAnthropic, APIKey: "of the file"})
	equal(t, "openai, which is not in the file", c.Models.Providers["openai"], ModelProvider{Type: ProviderOpenAI, APIKey: "sk-env"})
	equal(t, "skills.directories", c.Skills.Directories, []string{filepath.Join(base, "more"), "/abs"})
}

func TestProblemsWithModelsAreReported(t *testing.T) {
	for text, want := range map[string]string{
		"models: {default: gpt-5}":                                       "models.default: must be provider:model",
		"models: {default: 'opneai:gpt-5'}":                              "models.default: there is no provider \"opneai\"; did you mean openai?",
		"models: {providers: {mine: {baseUrl: 'http://x'}}}":             "models.providers.mine: type is missing",
		"models: {providers: {mine: {type: openai}}}":                    "models.providers.mine: baseUrl is missing",
		"models: {providers: {mine: {type: openai, baseUrl: 'x:1/v1'}}}": "models.providers.mine.baseUrl: must be an address",
		"models: {providers: {mine: {type: google}}}":                    "models.providers.mine.type: ",
	} {
		if _, err := load(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %s", text, err, want)
		}
	}
}

func TestModelsAreReachedThroughTheEnvironmentsProxyByDefault(t *testing.T) {
	env := Environment{"HTTPS_PROXY": "http://u:canary@proxy:3128", "no_proxy": "a.example"}
	for file, want := range map[string]string{
		"":                                       "http://u:canary@proxy:3128 a.example proxy:3128",
		"models: {proxy: environment}":           "http://u:canary@proxy:3128 a.example proxy:3128",
		"models: {proxy: none}":                  "  ",
		"models: {proxy: 'socks5://other:1080'}": "socks5://other:1080  other:1080",
		"models: {proxy: 'http://u:${env:P}@other:80/'}": "http://u:s3@other:80/  other:80",
	} {
		env["P"] = "s3"
		c := mustLoad(t, file, env)
		equal(t, file, c.Models.Proxy.URL.Reveal()+" "+c.Models.Proxy.NoProxy+" "+c.Models.Proxy.Host(), want)
		if printed := fmt.Sprintf("%+v", c); strings.Contains(printed, "canary") {
			t.Errorf("the proxy's password is printed: %s", printed)
		}
	}
	equal(t, "as curl takes it", mustLoad(t, "", Environment{"https_proxy": "proxy:3128"}).Models.Proxy.Host(), "proxy:3128")
	for file, env := range map[string]Environment{"models: {proxy: 'ftp://canary'}": nil, "models: {proxy: canary}": nil, "": {"HTTPS_PROXY": "http://canary:x"}} {
		if _, err := load(t, file, env); err == nil || !strings.Contains(err.Error(), "models.proxy") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s %v gives %v", file, env, err)
		}
	}
}

func TestTheElicitationTimeoutOfChatsIsASetting(t *testing.T) {
	equal(t, "by default", mustLoad(t, "", nil).Chat.ElicitationTimeout, 5*time.Minute)
	equal(t, "set", mustLoad(t, "chat: {elicitationTimeoutSeconds: 7}", nil).Chat.ElicitationTimeout, 7*time.Second)
}

func TestAModelWithoutAKeyCausesAWarning(t *testing.T) {
	warned := func(env Environment) bool {
		c := mustLoad(t, "models: {default: 'anthropic:claude-opus-5'}", env)
		return strings.Contains(strings.Join(c.Warnings, " "), "ANTHROPIC_API_KEY")
	}
	if !warned(nil) || warned(Environment{"ANTHROPIC_API_KEY": "k"}) {
		t.Error("the warning should appear if and only if there is no key")
	}
}

func TestTheConfigurationOverridesBaseURLsFromTheEnvironment(t *testing.T) {
	env := Environment{"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/", "OPENAI_BASE_URL": "http://127.0.0.1:2/v1/"}
	c := mustLoad(t, `models: {default: "openai:m"}`, env)
	equal(t, "anthropic", c.Models.Providers["anthropic"].BaseURL, "http://127.0.0.1:1")
	equal(t, "openai", c.Models.Providers["openai"].BaseURL, "http://127.0.0.1:2/v1")
	c = mustLoad(t, `models: {providers: {openai: {baseUrl: "http://127.0.0.1:3/v1"}, local: {type: openai, baseUrl: "http://127.0.0.1:4/v1"}}}`, env)
	equal(t, "openai of the file", c.Models.Providers["openai"].BaseURL, "http://127.0.0.1:3/v1")
	equal(t, "another provider", c.Models.Providers["local"].BaseURL, "http://127.0.0.1:4/v1")
	if _, err := load(t, `models: {}`, Environment{"OPENAI_BASE_URL": "x:1/v1"}); err == nil || !strings.Contains(err.Error(), "OPENAI_BASE_URL") {
		t.Errorf("an invalid one returned %v", err)
	}
}
