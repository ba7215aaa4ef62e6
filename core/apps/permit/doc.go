// Package permit decides what people may let an app use beyond its sandbox, and finds what an app's definition
// suggests that it needs.
//
// A Guard decides who may grant something, and what cannot be granted over the API because only the configuration may
// allow it. It resolves symbolic links, so that a decision applies to the actual location. Package apps asks the Guard
// when something is granted and again at every start. Guard.Requests derives possible needs from an app's arguments,
// variables and settings.
//
// The package does not store decisions (core.Permission, in the record of an app) and does not enforce them (instance,
// sandbox).
package permit
