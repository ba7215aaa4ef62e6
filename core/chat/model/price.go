package model

import (
	"bytes"
	_ "embed" // for prices.json
	"encoding/json"
	"fmt"
	"maps"
	"os"
)

//go:embed prices.json
var embeddedPrices []byte

// Price is the price of a model's tokens, in US dollars per million. Cache reads and writes without a price cost the
// same as input.
type Price struct {
	Input      float64  `json:"input"`
	Output     float64  `json:"output"`
	CacheRead  *float64 `json:"cacheRead"`
	CacheWrite *float64 `json:"cacheWrite"`
}

// Prices maps provider:model to prices.
type Prices map[string]Price

// LoadPrices returns the embedded prices, overridden by those in the operator's file. file may be "".
func LoadPrices(file string) (Prices, error) {
	table, err := parsePrices(embeddedPrices)
	if err != nil {
		return nil, fmt.Errorf("the embedded prices: %w", err)
	}
	if file == "" {
		return table, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("models.prices: %w", err)
	}
	own, err := parsePrices(content)
	if err != nil {
		return nil, fmt.Errorf("models.prices: %s: %w", file, err)
	}
	maps.Copy(table, own)
	return table, nil
}

func parsePrices(content []byte) (Prices, error) {
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var raw map[string]struct {
		Price
		Input  *float64 `json:"input"`
		Output *float64 `json:"output"`
	}
	if err := dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf(`must look like {"provider:model": {"input": 1, "output": 2}}: %w`, err)
	}
	table := make(Prices, len(raw))
	for name, p := range raw {
		if p.Input == nil || p.Output == nil || *p.Input < 0 || *p.Output < 0 {
			return nil, fmt.Errorf("%q must have input and output, in dollars per million tokens", name)
		}
		table[name] = Price{Input: *p.Input, Output: *p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return table, nil
}

// Cost returns the cost of a model call in US dollars, or nil if the model's price is unknown.
func (t Prices) Cost(name string, u Usage) *float64 {
	p, known := t[name]
	if !known {
		return nil
	}
	read, write := p.Input, p.Input
	if p.CacheRead != nil {
		read = *p.CacheRead
	}
	if p.CacheWrite != nil {
		write = *p.CacheWrite
	}
	cost := (float64(u.Input)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*read + float64(u.CacheWrite)*write) / 1e6
	return &cost
}
