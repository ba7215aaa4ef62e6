package config

import (
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
)

// Settings is an adapter's part of the configuration: one JSON object. It may hold secrets, so
// every way of printing it gives "[redacted]"; JSON is the one way out.
type Settings struct{ raw core.Secret }

// NewSettings wraps a JSON object.
func NewSettings(object json.RawMessage) Settings { return Settings{core.Secret(object)} }

// JSON returns the object itself, {} when nothing is set.
func (s Settings) JSON() json.RawMessage {
	if s.raw == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(s.raw.Reveal())
}

// Format covers every verb.
func (s Settings) Format(f fmt.State, verb rune) { s.raw.Format(f, verb) }

// MarshalText covers JSON and YAML.
func (s Settings) MarshalText() ([]byte, error) { return s.raw.MarshalText() }
