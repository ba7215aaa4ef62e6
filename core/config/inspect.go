package config

import (
	"slices"
	"strings"
)

// unsetValue is shown by Effective for a value whose environment variable is not set.
const unsetValue = "[unset]"

// Inspect reads a configuration for display, not for starting a server. It differs from Load in that a value may
// refer to an environment variable that is set only in the server's environment. Such values are returned in unset,
// and Effective shows them as "[unset]"; otherwise, they are empty or have their default. The error contains all
// other problems.
func Inspect(o Options) (c *Config, unset Problems, err error) {
	c, problems, err := loadAll(o)
	if err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.Variable == "" }) {
		return nil, nil, problems.Sorted()
	}
	for _, p := range problems {
		c.showUnset(p)
	}
	if len(problems) > 0 {
		unset = problems.Sorted()
	}
	return c, unset, nil
}

// showUnset shows the value of a problem as unset.
func (c *Config) showUnset(p Problem) {
	i := slices.IndexFunc(c.effective, func(v Value) bool { return v.Path == p.Path })
	if i < 0 {
		i = slices.IndexFunc(c.effective, func(v Value) bool { return strings.Compare(v.Path, p.Path) > 0 })
		if i < 0 {
			i = len(c.effective)
		}
		c.effective = slices.Insert(c.effective, i, Value{})
	}
	c.effective[i] = Value{Path: p.Path, Value: unsetValue, Source: p.Place.String()}
}
