package config

import "github.com/ropewalk/ropewalk/core/trust"

// Tools says which tools of apps may be used without a person who looks at them.
type Tools struct {
	Pin trust.PinMode
}

type toolsSection struct {
	Pin string `json:"pin"`
}

func (s toolsSection) tools() Tools { return Tools{Pin: trust.PinMode(s.Pin)} }
