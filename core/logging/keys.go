package logging

import (
	"bytes"
	"io"
)

// plainKeys renames the keys of hclog's JSON lines to the keys that log tools expect. Quotes inside values are escaped,
// so a value cannot be mistaken for a key.
type plainKeys struct{ io.Writer }

// Write implements io.Writer.
func (p plainKeys) Write(line []byte) (int, error) {
	renamed := line
	for from, to := range map[string]string{
		`"@timestamp":`: `"time":`, `"@level":`: `"level":`, `"@message":`: `"msg":`, `"@module":`: `"logger":`, `"@caller":`: `"caller":`,
	} {
		renamed = bytes.Replace(renamed, []byte(from), []byte(to), 1)
	}
	if _, err := p.Writer.Write(renamed); err != nil {
		return 0, err
	}
	return len(line), nil
}
