package price

import (
	"bytes"
	_ "embed" // the prices are a data file
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

//go:embed prices.json
var embedded []byte

// Price is what a model's tokens cost, in dollars for a million. A cache that has no price of its
// own costs what input does.
type Price struct {
	Input      float64  `json:"input"`
	Output     float64  `json:"output"`
	CacheRead  *float64 `json:"cacheRead"`
	CacheWrite *float64 `json:"cacheWrite"`
}

// Table is the prices by provider:model.
type Table map[string]Price

// Load returns the embedded prices with those of the operator's file over them. file may be "".
func Load(file string) (Table, error) {
	table, err := parse(embedded)
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
	own, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("models.prices: %s: %w", file, err)
	}
	maps.Copy(table, own)
	return table, nil
}

func parse(content []byte) (Table, error) {
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var raw map[string]struct {
		Price
		Input  *float64 `json:"input"`
		Output *float64 `json:"output"`
	}
	if err := dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf(`want {"provider:model": {"input": 1, "output": 2}}: %w`, err)
	}
	table := make(Table, len(raw))
	for name, p := range raw {
		if p.Input == nil || p.Output == nil || *p.Input < 0 || *p.Output < 0 {
			return nil, fmt.Errorf("%s: want input and output, dollars for a million tokens", name)
		}
		table[name] = Price{Input: *p.Input, Output: *p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return table, nil
}

// Cost is what a call of a model cost in dollars, nil when the model's price is not known.
func (t Table) Cost(name string, u model.Usage) *float64 {
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
