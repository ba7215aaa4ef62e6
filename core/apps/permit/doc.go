// Package permit decides what people may let an app use beyond its sandbox, and what the definition of an app suggests.
//
// A Guard says who may grant something and what nobody may grant over the API, because only the configuration may open it.
// It resolves symbolic links, so that a decision is about the place itself; package apps asks it when something is granted
// and again at every start. Requests reads wishes from arguments, variables and settings of an app.
//
// The package does not keep decisions (core.Permission, in the record of an app) and does not enforce them (instance,
// sandbox).
package permit
