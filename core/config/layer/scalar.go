package layer

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
)

var (
	intForm    = regexp.MustCompile(`^[-+]?[0-9]+$`)
	octHexForm = regexp.MustCompile(`^(0o[0-7]+|0x[0-9a-fA-F]+)$`)
	floatForm  = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?$`)
	envForm    = regexp.MustCompile(`\$?\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Plain resolves an unquoted scalar by the core schema of YAML 1.2.2 (section 10.3.2): yes, on and dates are
// text, 010 is ten.
func Plain(text string) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	switch {
	case intForm.MatchString(text):
		digits := strings.TrimPrefix(text, "+")
		if n, ok := new(big.Int).SetString(digits, 10); ok && len(digits) < 64 {
			return json.Number(n.String())
		}
	case octHexForm.MatchString(text):
		if n, ok := new(big.Int).SetString(text, 0); ok && len(text) < 64 {
			return json.Number(n.String())
		}
	case floatForm.MatchString(text) && len(text) < 64:
		if f, ok := new(big.Float).SetString(text); ok {
			return json.Number(f.Text('g', 17))
		}
	}
	return text
}

// expand replaces ${env:NAME} in a string and returns the names that are not set. $${env:NAME} becomes
// ${env:NAME}.
func expand(text string, env map[string]string) (out string, missing []string) {
	out = envForm.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		name := envForm.FindStringSubmatch(m)[1]
		value, set := env[name]
		if !set {
			missing = append(missing, name)
		}
		return value
	})
	return out, missing
}
