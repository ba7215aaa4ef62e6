// Package schema checks the arguments of tools, and forms, against their JSON Schemas, within bounds: a
// schema that takes too many steps is never applied. It does not decide what happens to such a tool;
// package tools does.
package schema
