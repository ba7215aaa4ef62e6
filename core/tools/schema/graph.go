package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaGraph contains the schemas of a document. Each schema comes after those that it applies to the same value.
type schemaGraph struct {
	index map[*jsonschema.Schema]int // -1 while the schemas that it applies are being visited
	nodes []schemaNode
}

// schemaNode is one schema: its own steps, and the schemas that it applies, by index.
type schemaNode struct {
	steps    int
	same     []int            // to the same value
	members  []int            // to every member of an object
	elements []int            // to every element of an array
	named    map[string][]int // to the member with that name
	at       [][]int          // to the element at that index
}

// visitAll adds a schema and all schemas that can be reached from it. It returns the index of root.
func (g *schemaGraph) visitAll(root *jsonschema.Schema) (int, error) {
	pending := []*jsonschema.Schema{root}
	first := -1
	for len(pending) > 0 {
		s := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		at, err := g.visit(s, &pending)
		if err != nil {
			return 0, err
		}
		if first < 0 {
			first = at
		}
	}
	for s, at := range g.index {
		g.link(s, &g.nodes[at])
	}
	return first, nil
}

// visit adds a schema after those that it applies to the same value. It appends the schemas of members and elements
// to deeper.
func (g *schemaGraph) visit(s *jsonschema.Schema, deeper *[]*jsonschema.Schema) (int, error) {
	if at, known := g.index[s]; known {
		if at < 0 { // the schema applies itself to the same value again
			return 0, errTooComplex
		}
		return at, nil
	}
	if len(g.index) >= maxSchemas || s.RecursiveRef != nil || s.DynamicRef != nil && s.DynamicRef.Anchor != "" {
		return 0, errTooComplex
	}
	g.index[s] = -1
	n := schemaNode{steps: 1}
	if s.Enum != nil {
		n.steps += len(s.Enum.Values) / enumPerStep
	}
	for _, next := range appliedToSame(s) {
		at, err := g.visit(next, deeper)
		if err != nil {
			return 0, err
		}
		n.same = append(n.same, at)
	}
	children := childSchemas(s)
	*deeper = append(*deeper, children.members...)
	*deeper = append(*deeper, children.elements...)
	for _, child := range children.named {
		*deeper = append(*deeper, child)
	}
	*deeper = append(*deeper, children.at...)
	g.index[s] = len(g.nodes)
	g.nodes = append(g.nodes, n)
	return g.index[s], nil
}

// link sets the schemas of members and elements, all of which must have been visited.
func (g *schemaGraph) link(s *jsonschema.Schema, n *schemaNode) {
	children := childSchemas(s)
	n.named = make(map[string][]int, len(children.named))
	for name, child := range children.named {
		n.named[name] = append(n.named[name], g.index[child])
	}
	for _, child := range children.members {
		n.members = append(n.members, g.index[child])
	}
	for _, child := range children.elements {
		n.elements = append(n.elements, g.index[child])
	}
	for _, child := range children.at {
		n.at = append(n.at, []int{g.index[child]})
	}
}

// expand extends counts to the schemas that are applied to the same value, and returns the total number of steps.
func (g *schemaGraph) expand(counts []int) (steps int) {
	for at, n := range slices.Backward(g.nodes) {
		if counts[at] == 0 {
			continue
		}
		steps = saturate(steps + saturate(counts[at]*n.steps))
		for _, next := range n.same {
			counts[next] = saturate(counts[next] + counts[at])
		}
	}
	return steps
}

// count adds to steps how many steps it takes to check a value. counts says how many times each schema applies to the
// value. It returns false if there are too many steps.
func (g *schemaGraph) count(value any, counts []int, steps *int) bool {
	*steps = saturate(*steps + g.expand(counts) + len(g.nodes)/nodesPerStep)
	if *steps > maxSteps {
		return false
	}
	next := make([]int, len(counts))
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			clear(next)
			g.apply(counts, next, func(n *schemaNode) ([]int, []int) { return n.members, n.named[name] })
			if !g.count(member, next, steps) {
				return false
			}
		}
	case []any:
		for index, element := range v {
			clear(next)
			g.apply(counts, next, func(n *schemaNode) ([]int, []int) {
				if index < len(n.at) {
					return n.elements, n.at[index]
				}
				return n.elements, nil
			})
			if !g.count(element, next, steps) {
				return false
			}
		}
	}
	return true
}

// apply adds to next the schemas that apply to one member or element.
func (g *schemaGraph) apply(counts, next []int, of func(*schemaNode) (all, this []int)) {
	for i := range g.nodes {
		if counts[i] == 0 {
			continue
		}
		all, this := of(&g.nodes[i])
		for _, at := range all {
			next[at] = saturate(next[at] + counts[i])
		}
		for _, at := range this {
			next[at] = saturate(next[at] + counts[i])
		}
	}
}

// descend returns an upper bound on how many times each schema applies to any one member or element of a value.
func (g *schemaGraph) descend(counts []int) []int {
	members, elements := make([]int, len(counts)), make([]int, len(counts))
	named, at := map[string]map[int]int{}, map[int]map[int]int{}
	for i, n := range g.nodes {
		if counts[i] == 0 {
			continue
		}
		for _, next := range n.members {
			members[next] = saturate(members[next] + counts[i])
		}
		for _, next := range n.elements {
			elements[next] = saturate(elements[next] + counts[i])
		}
		for name, list := range n.named {
			addCounts(named, name, list, counts[i])
		}
		for index, list := range n.at {
			addCounts(at, index, list, counts[i])
		}
	}
	next := make([]int, len(counts))
	for i := range next {
		next[i] = max(members[i], elements[i])
	}
	for _, one := range named {
		for i, count := range one {
			next[i] = max(next[i], saturate(members[i]+count))
		}
	}
	for _, one := range at {
		for i, count := range one {
			next[i] = max(next[i], saturate(elements[i]+count))
		}
	}
	return next
}

func addCounts[K comparable](all map[K]map[int]int, key K, list []int, count int) {
	if all[key] == nil {
		all[key] = map[int]int{}
	}
	for _, next := range list {
		all[key][next] = saturate(all[key][next] + count)
	}
}

// saturate keeps sums and products of two counts within the range of an int.
func saturate(count int) int { return min(count, 1<<30) }
