// Package view decides which tools a caller may see, and how they are presented. It owns the views of workspaces:
// those that the configuration declares, those that admins store, and which of them apply to whom. It does not know
// about lists or calls: package tools applies the decision to everything that it lists, finds and calls.
package view
