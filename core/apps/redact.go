package apps

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// shortest is the length in bytes under which a value is not searched for: it would blot out
// half of every line, and guards nothing.
const shortest = 4

// redactor takes an installation's secrets out of what its app says about itself.
type redactor struct{ replacer *strings.Replacer }

// newRedactor knows every value of env but those that the manifest declares and does not call
// sensitive, and everything secret about a remote.
func newRedactor(record core.Installation) redactor {
	var fields map[string]bundle.Field
	if m, err := bundle.ParseManifest(record.Manifest); err == nil {
		fields = m.UserConfig
	}
	var secrets []string
	add := func(s core.Secret) {
		if v := s.Reveal(); len(v) >= shortest {
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
	// A longer secret may hold a shorter one.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "[redacted]")
	}
	return redactor{strings.NewReplacer(pairs...)}
}

func (r redactor) text(s string) string { return r.replacer.Replace(s) }
