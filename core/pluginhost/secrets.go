package pluginhost

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
)

// secretName matches the names of settings whose values are secret.
var secretName = regexp.MustCompile(`(?i)secret|password|passwd|token|credential|private|api_?key|dsn`)

// shortestSecret is the minimum length of a value that is replaced. A shorter value could occur in a text by chance.
const shortestSecret = 4

const redacted = "[redacted]"

// secrets are the values in a plugin's settings that must not appear in log messages or errors, even if the plugin
// writes them. The longest comes first.
type secrets []string

// secretsOf finds the secrets in settings: values with a name such as password, and passwords in URLs.
func secretsOf(settings []byte) secrets {
	var value any
	if json.Unmarshal(settings, &value) != nil {
		return nil
	}
	var found secrets
	found.collect(value, false)
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(found)
}

func (s *secrets) collect(value any, secret bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			s.collect(inner, secret || secretName.MatchString(name))
		}
	case []any:
		for _, inner := range v {
			s.collect(inner, secret)
		}
	case string:
		if secret {
			s.add(v)
		}
		if u, err := url.Parse(v); err == nil && u.User != nil {
			if password, set := u.User.Password(); set {
				s.add(password)
				raw, _, _ := strings.Cut(strings.TrimPrefix(v, u.Scheme+"://"), "@")
				_, raw, _ = strings.Cut(raw, ":") // as written, with its escapes
				s.add(raw)
			}
		}
	}
}

func (s *secrets) add(value string) {
	if len(value) < shortestSecret {
		return
	}
	*s = append(*s, value)
	if escaped, err := json.Marshal(value); err == nil { // as written in a JSON log message
		*s = append(*s, string(bytes.Trim(escaped, `"`)))
	}
}

// redact replaces the secrets in text.
func (s secrets) redact(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

func (s secrets) redactBytes(line []byte) []byte {
	for _, secret := range s {
		if bytes.Contains(line, []byte(secret)) {
			line = bytes.ReplaceAll(line, []byte(secret), []byte(redacted))
		}
	}
	return line
}

// redactError returns err with the secrets redacted from its message.
func (s secrets) redactError(err error) error {
	if err == nil || len(s) == 0 {
		return err
	}
	if problems, ok := errors.AsType[*plugins.ConfigError](err); ok {
		for i := range problems.Problems {
			problems.Problems[i].Message = s.redact(problems.Problems[i].Message)
		}
	}
	message := err.Error()
	if clean := s.redact(message); clean != message {
		return redactedError{clean, err}
	}
	return err
}

type redactedError struct {
	message string
	err     error
}

func (e redactedError) Error() string { return e.message }
func (e redactedError) Unwrap() error { return e.err }
