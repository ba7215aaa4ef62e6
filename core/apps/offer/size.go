package offer

import (
	"fmt"

	"github.com/ropewalk/ropewalk/core"
)

// The most that all lists of one app may hold together.
const (
	maxEntries = 10_000
	maxBytes   = 16 << 20
)

// CheckSize returns an error when the lists of an app are too large to be kept.
func CheckSize(o *core.Offer) error {
	entries := len(o.Tools) + len(o.Prompts) + len(o.Resources) + len(o.Templates)
	bytes := 0
	for i := range o.Tools {
		bytes += len(o.Tools[i].Raw)
	}
	for i := range o.Prompts {
		bytes += len(o.Prompts[i].Raw)
	}
	for i := range o.Resources {
		bytes += len(o.Resources[i].Raw)
	}
	for i := range o.Templates {
		bytes += len(o.Templates[i].Raw)
	}
	if entries > maxEntries || bytes > maxBytes {
		return fmt.Errorf("the app's lists have %d entries and %d bytes; at most %d entries and %d bytes are kept", entries, bytes, maxEntries, maxBytes)
	}
	return nil
}
