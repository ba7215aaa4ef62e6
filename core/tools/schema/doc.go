// Package schema checks the arguments of tools, and forms, against their JSON Schemas, within bounds: a schema that
// takes too many steps is never applied. Package tools decides how to treat a tool with such a schema.
package schema
