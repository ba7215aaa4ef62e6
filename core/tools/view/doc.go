// Package view decides which tools a caller may see, and how they are presented. It owns the views of workspaces, which
// the configuration declares or admins store, and decides which of them apply to a caller. It does not know about lists
// or calls: package tools applies the decision to everything that it lists, finds and calls.
package view
