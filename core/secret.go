package core

import "fmt"

const redacted = "[redacted]"

// Secret is a value that must not reach a log, an event, an error or a command line. Printing or marshaling it yields
// "[redacted]"; only Reveal returns the value.
type Secret string

// Reveal returns the value itself. Call it only where the value is used.
func (s Secret) Reveal() string { return string(s) }

func (Secret) String() string { return redacted }

// Secrets returns the values as secrets; nil for none.
func Secrets(values map[string]string) map[string]Secret {
	if len(values) == 0 {
		return nil
	}
	all := make(map[string]Secret, len(values))
	for name, value := range values {
		all[name] = Secret(value)
	}
	return all
}

// RevealAll returns the values themselves.
func RevealAll(secrets map[string]Secret) map[string]string {
	all := make(map[string]string, len(secrets))
	for name, secret := range secrets {
		all[name] = secret.Reveal()
	}
	return all
}

// Format implements fmt.Formatter for every verb, including %#v and %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText implements encoding.TextMarshaler, which JSON, YAML and map keys use.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
