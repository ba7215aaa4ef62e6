package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

func TestTheOperatorsPricesOverrideTheBuiltInOnes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(file, []byte(`{"local:m":{"input":0,"output":0},"anthropic:claude-opus-5":{"input":1,"output":2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := model.LoadPrices(file)
	if err != nil {
		t.Fatal(err)
	}
	u := model.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6}
	for name, want := range map[string]float64{"local:m": 0, "anthropic:claude-opus-5": 1 + 2 + 1 + 1, "anthropic:claude-sonnet-4-5": 3 + 15 + .3 + 3.75, "openai:gpt-5": 1.25 + 10 + .125 + 1.25} {
		if got := table.Cost(name, u); got == nil || *got < want-1e-9 || *got > want+1e-9 {
			t.Errorf("%s costs %v, want %v", name, got, want)
		}
	}
	if got := table.Cost("anthropic:unheard-of", u); got != nil {
		t.Errorf("a model without a price costs %v", *got)
	}
}

func TestAnInvalidPriceFileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "provider:model", `{"a:b":{"input":1}}`: "must have input and output", `{"a:b":{"input":-1,"output":1}}`: "must have input and output", `{"a:b":{"inptu":1}}`: "inptu",
	} {
		file := filepath.Join(t.TempDir(), "p.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := model.LoadPrices(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "models.prices") {
			t.Errorf("%s gives %v", text, err)
		}
	}
}
