package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

func showCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show an app: its source, state, settings and last error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return do(c, cmd, http.MethodGet, args[0], "", nil, func(o *cli.Output, fields map[string]json.RawMessage) error {
				inWords(fields)
				return printFields(o, fields)
			})
		},
	}
}

// shownFirst returns the fields of an app to print first, in this order. The others follow alphabetically.
func shownFirst() []string {
	return []string{"name", "displayName", "description", "bundleName", "version", "author", "status", "lastError", "lastOutput", "since", "restarts", "memoryBytes", "toolCount", "source", "trust"}
}

// printFields prints an object with one value per line: nested values under their path, such as source.kind,
// and each element of a list. Empty values are omitted.
func printFields(o *cli.Output, fields map[string]json.RawMessage) error {
	var lines []field
	for name, value := range fields {
		lines = appendFields(lines, name, value)
	}
	first := shownFirst()
	place := func(f field) int {
		if i := slices.Index(first, f.name); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(lines, func(a, b field) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	rows := make([][2]string, len(lines))
	for i, f := range lines {
		if rows[i][1] = f.text; i == 0 || lines[i-1].name != f.name {
			rows[i][0] = o.Text(label(f.name))
		}
	}
	return o.Record(rows)
}

// label returns a field's path in words: source.ref becomes "source ref", toolCount becomes "tool count". Names
// from the app's own settings stay unchanged.
func label(path string) string {
	top, rest, nested := strings.Cut(path, ".")
	text := words(top)
	if !nested {
		return text
	}
	if top == "setting" {
		return text + " " + rest
	}
	for part := range strings.SplitSeq(rest, ".") {
		text += " " + words(part)
	}
	return text
}

// words splits a name from the API into words. It drops a size's unit, which plainValue adds.
func words(name string) string {
	var text strings.Builder
	for _, r := range strings.TrimSuffix(name, "Bytes") {
		if unicode.IsUpper(r) {
			text.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		text.WriteRune(r)
	}
	return text.String()
}

// field is one line of printFields.
type field struct{ name, text string }

func appendFields(lines []field, name string, value json.RawMessage) []field {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0 || string(value) == "null":
	case value[0] == '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			break
		}
		for key, member := range members {
			lines = appendFields(lines, name+"."+key, member)
		}
	case value[0] == '[':
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil || len(elements) == 0 {
			break
		}
		for _, e := range elements {
			lines = append(lines, field{name, plainValue(name, e)})
		}
	default:
		if text := plainValue(name, value); text != "" {
			lines = append(lines, field{name, text})
		}
	}
	return lines
}

// plainValue returns a value in human-readable form. Objects in lists are left as JSON.
func plainValue(name string, value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	if bytes, err := strconv.ParseInt(string(value), 10, 64); err == nil && strings.HasSuffix(name, "Bytes") {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return string(value)
}
