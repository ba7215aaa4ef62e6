package registry

import (
	"regexp"
	"slices"
)

var placeholder = regexp.MustCompile(`\{([^{}]+)\}`)

// Fill replaces every {name} in text that is a variable of p with its value. Other braces are left alone, and values
// are not expanded again. ok is false if a variable has no value; such an argument or header must be left out.
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

// Places reports whether the variable with the given name has a {name} in the arguments, or in the URL or a header of a
// remote. A variable without one is an environment variable of the process.
func (p Package) Places(name string) bool {
	texts := slices.Concat(p.RuntimeArgs, p.Args, []string{p.Remote.URL})
	for _, value := range p.Remote.Headers {
		texts = append(texts, value)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(placeholder.FindAllStringSubmatch(text, -1), func(m []string) bool { return m[1] == name })
	})
}
