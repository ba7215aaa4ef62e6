// Package offer holds what apps offer: their lists of tools, prompts, resources and resource templates.
//
// It owns how the lists of an app are read and validated, which items are left out and why, and the Catalog. The
// Catalog holds the lists of each workspace as one immutable value and reports changes. It does not call tools, and
// does not decide which names they get in the namespace (tools).
package offer
