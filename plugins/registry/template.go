package registry

import (
	"regexp"
	"slices"
)

var placeholder = regexp.MustCompile(`\{([^{}]+)\}`)

// Fill puts values in the place of every {name} in text that is a variable of p; other braces stay
// as they are, and what a value brings in is not looked at again. It reports false when a variable
// has no value: an argument or header with such a gap is to be left out.
func (p Package) Fill(text string, value func(Variable) (string, bool)) (filled string, ok bool) {
	ok = true
	filled = placeholder.ReplaceAllStringFunc(text, func(ref string) string {
		at := slices.IndexFunc(p.Variables, func(v Variable) bool { return v.Name == ref[1:len(ref)-1] })
		if at < 0 {
			return ref
		}
		given, has := value(p.Variables[at])
		ok = ok && has
		return given
	})
	return filled, ok
}

// Places reports whether the variable of that name has a place of its own: a {name} in the
// arguments, or in the URL or a header of a remote. A variable that has none is an environment
// variable of the process.
func (p Package) Places(name string) bool {
	texts := slices.Concat(p.RuntimeArgs, p.Args, []string{p.Remote.URL})
	for _, value := range p.Remote.Headers {
		texts = append(texts, value)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(placeholder.FindAllStringSubmatch(text, -1), func(m []string) bool { return m[1] == name })
	})
}
