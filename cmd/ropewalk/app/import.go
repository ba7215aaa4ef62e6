package app

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/pasted"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// imported is the result for one server in a configuration (docs/api.md 3.6).
type imported struct {
	Name, ServerName, Status, Source, Ref, Version, Error, Message string
	Args, Env, Headers, Left                                       []string

	Details    json.RawMessage
	Inputs     []pasted.Input
	ToolFilter *core.ToolFilter
	Requests   []core.PermissionRequest
	App        *entry
}

// importFlags are the flags of `app import`.
type importFlags struct {
	decisions
	dryRun, replace, skip bool
	set                   []string
}

// sets reports whether --set gives the value of a placeholder.
func (f *importFlags) sets(name string) bool {
	return slices.ContainsFunc(f.set, func(set string) bool { return set == name || strings.HasPrefix(set, name+"=") })
}

func importCommand(c *cli.Connection) *cobra.Command {
	f := &importFlags{}
	cmd := &cobra.Command{
		Use: "import [FILE | TEXT]", Short: "Install the servers from another MCP client's configuration", Args: cobra.MaximumNArgs(1),
		Long: "Install the servers from another MCP client's configuration. It may be JSON with mcpServers, servers " +
			"(VS Code), context_servers (Zed) or mcp (opencode), the TOML of Codex, or YAML. JSON may have comments " +
			"and trailing commas, and may lack the outer braces.\n\nYou can also give what a README contains: a link that " +
			"installs a server in Cursor, VS Code, LM Studio or Goose, a `claude mcp add` or `codex mcp add` command, " +
			"or the command line or URL of a server. Without an argument, the text is read from standard input.\n\nOn " +
			"a terminal, the command asks for placeholders such as ${TOKEN}, $TOKEN or ${input:token}; elsewhere, pass " +
			"them with --set. Disabled servers are left out. --dry-run shows what would be installed. If a server " +
			"cannot be installed, the others still are, and the exit status is 1.",
		Example: "  ropewalk app import ~/.cursor/mcp.json --dry-run\n  pbpaste | ropewalk app import --set GITHUB_TOKEN\n" +
			"  ropewalk app import ~/.codex/config.toml --skip-existing\n  ropewalk app import 'claude mcp add docs -- npx -y docs-mcp'",
		RunE: func(cmd *cobra.Command, args []string) error { return importServers(cmd, c, f, args) },
	}
	flags := cmd.Flags()
	f.bind(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be installed, and install nothing")
	flags.BoolVar(&f.replace, "replace", false, "replace apps that have the same name as a server; their data stays")
	flags.BoolVar(&f.skip, "skip-existing", false, "leave apps with the same name as a server as they are")
	flags.StringArrayVar(&f.set, "set", nil, "the value of a placeholder, NAME=VALUE, or NAME for the value in your environment; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("replace", "skip-existing")
	return cmd
}

func importServers(cmd *cobra.Command, c *cli.Connection, f *importFlags, args []string) error {
	servers, err := readServers(cmd, args)
	if err != nil {
		return err
	}
	values, err := environment(f.set)
	if err != nil {
		return cli.Usage(err)
	}
	if values == nil {
		values = map[string]string{}
	}
	if !f.dryRun && len(args) == 1 && args[0] != "-" && cli.IsTerminal(cmd.InOrStdin()) {
		if err := askForInputs(cmd, servers, values); err != nil {
			return err
		}
	}
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	answer, err := sendImport(cmd, client, f, servers, values)
	if err != nil {
		return err
	}
	return printImported(cmd, c, f, answer)
}

// sendImport requests an import. If servers ask for permissions, it sends these servers again once a person or a flag
// has answered.
func sendImport(cmd *cobra.Command, client *apiclient.Client, f *importFlags, servers map[string]json.RawMessage, values map[string]string) (json.RawMessage, error) {
	decided := map[string]*core.PermissionChange{}
	for name := range servers {
		if ch := f.given(cmd, local(client.Server)); ch != nil && !f.dryRun {
			decided[name] = ch
		}
	}
	var all struct {
		DryRun  bool              `json:"dryRun"`
		Servers []json.RawMessage `json:"servers"`
	}
	existing := ""
	switch {
	case f.replace:
		existing = "replace"
	case f.skip:
		existing = "skip"
	}
	for range 3 { // as in send
		var answer json.RawMessage
		body := map[string]any{"mcpServers": servers, "values": values, "dryRun": f.dryRun, "existing": existing, "permissions": decided}
		if err := client.Do(cmd.Context(), http.MethodPost, "/v1/apps/import", body, &answer); err != nil {
			return nil, err
		}
		var now struct{ Servers []json.RawMessage }
		if err := json.Unmarshal(answer, &now); err != nil {
			return nil, fmt.Errorf("the response does not match the API: %w", err)
		}
		again := map[string]json.RawMessage{}
		for _, raw := range now.Servers {
			var s imported
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, fmt.Errorf("the response does not match the API: %w", err)
			}
			if s.Error == "permissions_required" && f.complete(cmd, s.Name, decided[s.Name], s.Details) {
				again[s.Name] = servers[s.Name]
				continue
			}
			all.Servers = append(all.Servers, raw)
		}
		if servers = again; len(again) == 0 {
			break
		}
	}
	all.DryRun = f.dryRun
	return json.Marshal(all)
}

// askForInputs asks on the terminal for values that servers need and that were not given.
func askForInputs(cmd *cobra.Command, servers map[string]json.RawMessage, values map[string]string) error {
	lines := bufio.NewReader(cmd.InOrStdin())
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		d, err := pasted.Read(name, servers[name], values)
		if err != nil {
			continue // the server reports what is wrong with it
		}
		for _, in := range d.Inputs {
			if _, given := values[in.Name]; given {
				continue
			}
			cmd.PrintErrf("%s needs %s for %s", cli.Printable(name), cli.Printable(in.Name), cli.Printable(strings.Join(in.Fields, ", ")))
			if in.Default != "" {
				cmd.PrintErrf(" [%s]", cli.Printable(in.Default))
			}
			cmd.PrintErr(": ")
			value, err := readAnswer(cmd, lines, in.Default == "" || pasted.IsSample(in.Default))
			if err != nil {
				return err
			}
			if value == "" {
				value = in.Default
			}
			if value != "" {
				values[in.Name] = value
			}
		}
	}
	return nil
}

// readAnswer reads a line from the terminal, without echo if it may be a secret.
func readAnswer(cmd *cobra.Command, lines *bufio.Reader, secret bool) (string, error) {
	if file, ok := cmd.InOrStdin().(*os.File); ok && secret && lines.Buffered() == 0 {
		line, err := term.ReadPassword(int(file.Fd()))
		cmd.PrintErrln()
		return strings.TrimSpace(string(line)), err
	}
	line, err := lines.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// printImported prints a line for each server, what the import does not carry over, and what prevents some servers from
// being installed.
func printImported(cmd *cobra.Command, c *cli.Connection, f *importFlags, answer json.RawMessage) error {
	var all struct{ Servers []imported }
	if err := json.Unmarshal(answer, &all); err != nil {
		return fmt.Errorf("the response does not match the API: %w", err)
	}
	failed := 0
	for _, s := range all.Servers {
		if s.Status == "failed" {
			failed++
		}
	}
	err := cli.Print(c, cmd, answer, func(o *cli.Output, r struct{ Servers []imported }) error {
		rows := make([][]string, len(r.Servers))
		for i, s := range r.Servers {
			from := s.Ref
			if s.Version != "" && (s.Source == "npm" || s.Source == "pypi") {
				from += "@" + s.Version
			}
			rows[i] = []string{s.Name, s.ServerName, s.Status, s.Source, from}
			s.explain(cmd, f)
			if s.App != nil {
				printMissing(cmd, s.App.Name, s.App.Permissions.Missing)
			}
		}
		return o.Table([]string{"NAME", "APP", "STATUS", "SOURCE", "FROM"}, rows)
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s cannot be installed", failed, cli.Count(len(all.Servers), "server"))
	}
	return nil
}

// explain prints details to standard error for which a server's line has no room.
func (s imported) explain(cmd *cobra.Command, f *importFlags) {
	name := cli.Printable(cmp.Or(s.Name, s.ServerName, "the command"))
	switch {
	case s.Status == "exists" && f.skip:
	case s.Status == "exists":
		cmd.PrintErrf("%s: %s; --replace installs this one in its place, --skip-existing keeps the installed one\n", name, cli.Printable(s.Message))
	case s.Error == "credentials_required":
		cmd.PrintErrf("%s: %s; give a value with --set NAME=VALUE, or --set NAME for the value in your environment\n", name, cli.Printable(s.Message))
	case s.Message != "":
		cmd.PrintErrf("%s: %s\n", name, cli.Printable(s.Message))
	}
	for _, in := range s.Inputs {
		if in.Default != "" && s.Error == "" && !f.sets(in.Name) {
			cmd.PrintErrf("%s: %s is %s, unless --set %s=VALUE gives another value\n", name, cli.Printable(strings.Join(in.Fields, ", ")), cli.Printable(in.Default), cli.Printable(in.Name))
		}
	}
	if len(s.Left) > 0 {
		cmd.PrintErrf("%s: not imported: %s\n", name, cli.Printable(strings.Join(s.Left, ", ")))
	}
	if t := s.ToolFilter; t != nil && len(t.Include) > 0 {
		cmd.PrintErrf("%s: only the tools %s\n", name, cli.Printable(strings.Join(t.Include, ", ")))
	}
	if t := s.ToolFilter; t != nil && len(t.Exclude) > 0 {
		cmd.PrintErrf("%s: without the tools %s\n", name, cli.Printable(strings.Join(t.Exclude, ", ")))
	}
	if !f.dryRun {
		return
	}
	for _, part := range []struct {
		what  string
		words []string
	}{{"arguments", s.Args}, {"variables", s.Env}, {"headers", s.Headers}} {
		if len(part.words) > 0 {
			cmd.PrintErrf("%s: %s: %s\n", name, part.what, cli.Printable(strings.Join(part.words, " ")))
		}
	}
	for _, one := range s.Requests {
		cmd.PrintErrf("%s: asks to %s\n", name, wish(one))
	}
}

// readServers reads the configuration in a file, in the argument itself, or from standard input.
func readServers(cmd *cobra.Command, args []string) (map[string]json.RawMessage, error) {
	var input []byte
	var err error
	if len(args) == 1 && args[0] != "-" {
		input, err = os.ReadFile(args[0])
		if servers, failed := pasted.Servers([]byte(args[0])); err != nil && failed == nil {
			return servers, nil
		}
	} else {
		if cli.IsTerminal(cmd.InOrStdin()) {
			cmd.PrintErrln("Paste the configuration, and press Ctrl-D on a line of its own:")
		}
		input, err = io.ReadAll(cmd.InOrStdin())
	}
	if err != nil {
		return nil, err
	}
	servers, err := pasted.Servers(input)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return servers, nil
}
