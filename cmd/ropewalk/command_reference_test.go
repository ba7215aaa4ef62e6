package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const commandsPath = "../../docs/commands.md"

// To generate docs/commands.md, run: go test ./cmd/ropewalk -run Reference -update
func TestTheCommandReferenceMatchesTheCommands(t *testing.T) {
	t.Parallel()
	cmd := root()
	cmd.InitDefaultHelpCmd()
	var page strings.Builder
	page.WriteString("# Commands\n\nGenerated from `ropewalk help`. Every command has `--help`.\n")
	for _, group := range cmd.Groups() {
		fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range cmd.Commands() {
			if c.GroupID == group.ID {
				describe(&page, c)
			}
		}
	}
	isCommitted(t, commandsPath, page.String())
}

// describe writes a command and its subcommands.
func describe(page *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.Runnable() || !c.HasSubCommands() {
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		use := strings.TrimSuffix(c.UseLine(), " [flags]")
		fmt.Fprintf(page, "\n### %s\n\n```text\n%s\n```\n\n%s\n", strings.TrimPrefix(c.CommandPath(), "ropewalk "), use, escaped(text))
		head := "\n| Flag | Meaning |\n|---|---|\n"
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			placeholder, usage := pflag.UnquoteUsage(f)
			name := strings.TrimSpace("--" + f.Name + " " + placeholder)
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			fmt.Fprintf(page, "%s| `%s` | %s |\n", head, name, strings.ReplaceAll(escaped(usage), "|", `\|`))
			head = ""
		})
	}
	for _, child := range c.Commands() {
		describe(page, child)
	}
}

// escaped returns a help text in which Markdown sees no HTML and no link.
func escaped(text string) string {
	return strings.NewReplacer("<", "&lt;", "[", `\[`, "*", `\*`).Replace(text)
}
