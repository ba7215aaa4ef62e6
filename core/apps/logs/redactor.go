package logs

import (
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
// manifest declares and does not mark as sensitive, and the credentials of a remote server.
func NewRedactor(record core.Installation) Redactor {
	var fields map[string]bundle.Field
	if m, err := bundle.ParseManifest(record.Manifest); err == nil {
		fields = m.UserConfig
	}
	var secrets []string
	add := func(s core.Secret) {
		if v := s.Reveal(); len(v) >= minSecret {
			secrets = append(secrets, v)
		}
	}
	for name, value := range record.Env {
		if f, declared := fields[name]; !declared || f.Sensitive {
			add(value)
		}
	}
	if record.Remote != nil {
		add(record.Remote.Auth.Token)
		add(record.Remote.Auth.Value)
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

// Text returns s with each secret replaced by [redacted].
func (r Redactor) Text(s string) string { return r.replacer.Replace(s) }
