package apps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// habitPrefix begins the names of the settings that keep what bundles ask their clients for.
const habitPrefix = "bundle.asks."

// rememberPatience is how long keeping one may take.
const rememberPatience = 5 * time.Second

// habit is what one version of a bundle asks its clients for, as it is kept. It was seen to ask, which
// no later run makes untrue; what else was found out about a bundle is found out anew by each server.
type habit struct {
	Bundle  string   `json:"bundle"`
	Version string   `json:"version"`
	Asks    []string `json:"asks"`
}

func words() []struct {
	word string
	what ability
} {
	return []struct {
		word string
		what ability
	}{{"form", abilityForm}, {"url", abilityURL}, {"sampling", abilitySampling}, {"roots", abilityRoots}, {"sampling.tools", abilitySamplingTools}}
}

func habitOf(b bundleVersion, asks ability) (name, value string) {
	h := habit{Bundle: b.name, Version: b.version}
	for _, w := range words() {
		if asks&w.what != 0 {
			h.Asks = append(h.Asks, w.word)
		}
	}
	sum := sha256.Sum256([]byte(b.name + "\x00" + b.version))
	raw, _ := json.Marshal(h) // strings always marshal
	return habitPrefix + hex.EncodeToString(sum[:16]), string(raw)
}

// asks is what a kept habit says; words of another version of this server say nothing here.
func (h habit) asks() (asks ability) {
	for _, w := range words() {
		if slices.Contains(h.Asks, w.word) {
			asks |= w.what
		}
	}
	return asks
}

// recall reads what was found out before, by this server or another one of the deployment. What
// cannot be read is found out anew.
func (y *Manager) recall(ctx context.Context) {
	kept, err := y.o.Records.Settings(ctx, habitPrefix)
	if err != nil {
		y.log.Warn("What bundles ask their clients for could not be read; it is found out anew", "error", err)
		return
	}
	for name, value := range kept {
		var h habit
		if err := json.Unmarshal([]byte(value), &h); err != nil {
			y.log.Warn("What a bundle asks its clients for could not be read; it is found out anew", "setting", name, "error", err)
			continue
		}
		y.memory.change(bundleVersion{h.Bundle, h.Version}, func(t *traits) { t.asks |= h.asks() })
	}
}

// remember writes down what a bundle asks its clients for, behind the back of the question. Close waits
// for it.
func (y *Manager) remember(b bundleVersion, asks ability) {
	_, leave, err := y.enter(context.Background())
	if err != nil {
		return // the server ends; it is found out anew
	}
	name, value := habitOf(b, asks)
	go func() {
		defer leave()
		ctx, cancel := context.WithTimeout(context.Background(), rememberPatience)
		defer cancel()
		if err := y.o.Records.PutSetting(ctx, name, value); err != nil {
			y.log.Warn("What a bundle asks its clients for could not be kept; it is found out anew after a restart", "bundle", b.name, "error", err)
		}
	}()
}

// recalls reports whether a change that another server made is one of these.
func recalls(c core.Change) bool {
	return c.Kind == core.ChangeAll || c.Kind == core.ChangeSetting && len(c.Name) > len(habitPrefix) && c.Name[:len(habitPrefix)] == habitPrefix
}
