package core

import "fmt"

const redacted = "[redacted]"

// Secret is a value that must not reach a log, an event, an error or a command line. Printing or
// marshalling it yields "[redacted]"; only Reveal returns the value.
type Secret string

// Reveal returns the value itself. Call it only where the value is used.
func (s Secret) Reveal() string { return string(s) }

func (Secret) String() string { return redacted }

// Format covers every verb, including %#v and %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText covers JSON, YAML and map keys.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
