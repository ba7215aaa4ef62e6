package schema

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The limits for schemas and for checks against them. One step is one schema applied to one value. A validator
// applies a schema once for every path that leads to it: a chain of 24 schemas, each with two references to the next
// one, takes 2^24 steps for a single value.
const (
	maxSchemas       = 20_000  // per document
	maxStepsPerValue = 10_000  // for the outermost value, and for each of its members
	maxSteps         = 200_000 // per check
	maxLevels        = 100     // nesting of a value; rawjson rejects deeper ones
	enumPerStep      = 8       // enum values compared in one step
	nodesPerStep     = 64      // schemas of a document counted in one step
)

var errTooComplex = errors.New("the schema is too complex")

// schemaCost is an upper bound on the steps of a check.
type schemaCost struct {
	graph  *schemaGraph
	first  int                // the outermost schema
	levels [maxLevels + 1]int // maximum steps for one value at each level
}

// allows reports whether checking a value takes at most maxSteps steps.
func (c *schemaCost) allows(value any) bool {
	if steps := 0; c.bound(value, 0, &steps) {
		return true
	}
	steps, counts := 0, make([]int, len(c.graph.nodes))
	counts[c.first] = 1
	return c.graph.count(value, counts, &steps)
}

// bound adds up c.levels for all values. It returns false if the sum is too large, which does not mean that the check
// actually takes that many steps.
func (c *schemaCost) bound(value any, level int, steps *int) bool {
	if *steps += c.levels[min(level, maxLevels)]; *steps > maxSteps {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !c.bound(member, level+1, steps) {
				return false
			}
		}
	case []any:
		for _, element := range v {
			if !c.bound(element, level+1, steps) {
				return false
			}
		}
	}
	return true
}

// measure returns the cost of a schema, or errTooComplex.
func measure(root *jsonschema.Schema) (*schemaCost, error) {
	g := &schemaGraph{index: map[*jsonschema.Schema]int{}}
	first, err := g.visitAll(root)
	if err != nil {
		return nil, err
	}
	cost := &schemaCost{graph: g, first: first}
	counts := make([]int, len(g.nodes)) // maximum number of times each schema applies to one value of a level
	counts[first] = 1
	for level := range cost.levels {
		steps := g.expand(counts)
		cost.levels[level] = steps
		switch {
		case level < 2 && steps > maxStepsPerValue:
			return nil, errTooComplex
		case steps == 0: // no schema applies to values at this level
			return cost, nil
		case steps > maxSteps:
			for deeper := level; deeper < len(cost.levels); deeper++ {
				cost.levels[deeper] = maxSteps + 1
			}
			return cost, nil
		}
		counts = g.descend(counts)
	}
	return cost, nil
}
