package logs

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// minSecret is the length in bytes below which a value is not replaced: it would match too much of
// ordinary text, and protects nothing.
const minSecret = 4

// Redactor removes the secrets of one installation from text.
type Redactor struct{ replacer *strings.Replacer }

// NewRedactor knows the secrets of an installation: every value of Env except those that the
// manifest declares and does not mark as sensitive, and of a remote server the credentials and what may be
// one in its address.
func NewRedactor(record core.Installation) Redactor {
	var fields map[string]bundle.Field
	if m, err := bundle.ParseManifest(record.Manifest); err == nil {
		fields = m.UserConfig
	}
	var secrets []string
	add := func(values ...core.Secret) {
		for _, s := range values {
			if v := s.Reveal(); len(v) >= minSecret {
				secrets = append(secrets, v)
			}
		}
	}
	for name, value := range record.Env {
		if f, declared := fields[name]; !declared || f.Sensitive {
			add(value)
		}
	}
	if record.Remote != nil {
		add(record.Remote.Auth.Token, record.Remote.Auth.Value)
		add(inAddress(record.Remote.URL)...)
		for _, value := range record.Remote.Headers {
			add(value)
		}
	}
	// The longest first: a secret may contain a shorter one.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "[redacted]")
	}
	return Redactor{strings.NewReplacer(pairs...)}
}

// inAddress returns what may be secret in an address, as it is written and as it is meant: the query, the values in it
// and the fragment.
func inAddress(address string) (all []core.Secret) {
	rest, fragment, _ := strings.Cut(address, "#")
	_, query, _ := strings.Cut(rest, "?")
	parts := []string{query, fragment}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		_, value, named := strings.Cut(pair, "=")
		if !named {
			value = pair
		}
		parts = append(parts, value)
	}
	for _, part := range parts {
		all = append(all, core.Secret(part))
		if meant, err := url.QueryUnescape(part); err == nil && meant != part {
			all = append(all, core.Secret(meant))
		}
	}
	return all
}

// Text returns s with each secret replaced by [redacted].
func (r Redactor) Text(s string) string { return r.replacer.Replace(s) }
