package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// appliedToSame returns the schemas in s that apply to the same value as s itself.
func appliedToSame(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
	for _, dependency := range s.Dependencies {
		if schema, ok := dependency.(*jsonschema.Schema); ok {
			all = append(all, schema)
		}
	}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	return withoutNil(append(all, s.Ref, s.Not, s.If, s.Then, s.Else))
}

// children holds the schemas that apply to the members and elements of a value.
type children struct {
	members, elements []*jsonschema.Schema          // apply to each member or element
	named             map[string]*jsonschema.Schema // apply to the member with that name
	at                []*jsonschema.Schema          // apply to the element at that index
}

func childSchemas(s *jsonschema.Schema) children {
	c := children{named: s.Properties, at: s.PrefixItems}
	c.members = append(slices.Collect(maps.Values(s.PatternProperties)), s.PropertyNames, s.UnevaluatedProperties)
	if schema, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		c.members = append(c.members, schema)
	}
	c.elements = []*jsonschema.Schema{s.Contains, s.Items2020, s.UnevaluatedItems}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		c.elements = append(c.elements, items)
	case []*jsonschema.Schema:
		c.at = append(slices.Clone(c.at), items...)
	}
	if schema, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		c.elements = append(c.elements, schema)
	}
	c.members, c.elements = withoutNil(c.members), withoutNil(c.elements)
	return c
}

func withoutNil(all []*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}
