package logging

import (
	"bytes"
	"io"
)

// plainKeys renames the keys of hclog's JSON lines to those that log tools expect. Quotes inside values are
// escaped, so only keys match.
type plainKeys struct{ io.Writer }

// Write passes a line on.
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
