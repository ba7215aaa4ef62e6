package offer

import (
	"bytes"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// Differences returns the lists in which two offers differ.
func Differences(a, b *core.Offer) (lists []core.Kind) {
	for kind, equal := range map[core.Kind]bool{
		core.KindTools: slices.EqualFunc(a.Tools, b.Tools, func(a, b core.Tool) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}) && slices.Equal(a.Held, b.Held),
		core.KindPrompts: slices.EqualFunc(a.Prompts, b.Prompts, func(a, b core.Prompt) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
		core.KindResources: slices.EqualFunc(a.Resources, b.Resources, func(a, b core.Resource) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
		core.KindTemplates: slices.EqualFunc(a.Templates, b.Templates, func(a, b core.ResourceTemplate) bool {
			return a.Server == b.Server && bytes.Equal(a.Raw, b.Raw)
		}),
	} {
		if !equal {
			lists = append(lists, kind)
		}
	}
	return lists
}

// IsEmpty reports whether an offer has no items.
func IsEmpty(o *core.Offer) bool {
	return len(o.Tools)+len(o.Held)+len(o.Prompts)+len(o.Resources)+len(o.Templates) == 0
}
