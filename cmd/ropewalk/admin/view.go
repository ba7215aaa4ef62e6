package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

const viewsPath = "/v1/views"

// ViewCommand returns `ropewalk view`.
func ViewCommand() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "view", Aliases: []string{"views"}, Short: "List, set and remove views: named subsets of the workspace's tools"}
	c.Bind(cmd)
	cmd.AddCommand(
		listViews(c), setView(c),
		request(c, "remove NAME", "Remove a view; API keys that are bound to it then see no tools", 1, func(_ context.Context, _ *apiclient.Client, args []string) (call, error) {
			return call{method: http.MethodDelete, path: viewsPath + "/" + url.PathEscape(args[0]), done: "View " + args[0] + " has been removed."}, nil
		}),
	)
	return cmd
}

// listedView is a view from GET /v1/views.
type listedView struct {
	core.View
	Declared bool
}

// boundTo returns the roles and groups that see only the view.
func (v listedView) boundTo() string {
	bound := []string{}
	for _, role := range v.Roles {
		bound = append(bound, "role "+string(role))
	}
	for _, group := range v.Groups {
		bound = append(bound, "group "+group)
	}
	return strings.Join(bound, ", ")
}

func listViews(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the views of the workspace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Get(c, cmd, viewsPath, nil, func(o *cli.Output, r struct{ Views []listedView }) error {
				if len(r.Views) == 0 {
					cmd.PrintErrln("There are no views; `ropewalk view set NAME --tool 'files__*'` creates one.")
					return nil
				}
				rows := make([][]string, len(r.Views))
				for i, v := range r.Views {
					from := "workspace"
					if v.Declared {
						from = "configuration"
					}
					rows[i] = []string{v.Name, string(v.Default), strconv.Itoa(len(v.Include)), strconv.Itoa(len(v.Exclude)), strconv.Itoa(len(v.Tools)), from, v.boundTo()}
				}
				return o.Table([]string{"NAME", "DEFAULT", "INCLUDE", "EXCLUDE", "TOOLS", "FROM", "BOUND TO"}, rows)
			})
		},
	}
}

// viewFlags are the flags from which `view set` builds a definition.
type viewFlags struct {
	file, surface                                  string
	tools, apps, hiddenTools, hiddenApps, renaming []string
	roles, groups                                  []string
	readOnly                                       bool
}

func setView(c *cli.Connection) *cobra.Command {
	f := &viewFlags{}
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Create a view, or replace the one with that name", Args: cobra.ExactArgs(1),
		Long: "Create a view, or replace the one with that name. Its address for MCP clients is /mcp/WORKSPACE/v/NAME. " +
			"Callers see only the view if they use a key from `ropewalk key create --view NAME`, or have a role " +
			"or group given by --role or --group. A file can also set what the flags cannot: descriptions, and all " +
			"annotations (docs/views.md).",
		Example: "  ropewalk view set support --app tickets --tool 'files__read*' --exclude-tool '*__delete*'\n" +
			"  ropewalk view set safe --read-only --group contractors\n  ropewalk view set support --file support.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := f.definition(cmd, args[0])
			if err != nil {
				return cli.Usage(err)
			}
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			return do(cmd, c, client, call{method: http.MethodPost, path: viewsPath, body: v, done: "View " + v.Name + " has been saved."})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.file, "file", "", "read the definition from a YAML or JSON file, - for standard input")
	flags.StringArrayVar(&f.tools, "tool", nil, "show tools with this full name, where * matches any text; may be repeated")
	flags.StringArrayVar(&f.apps, "app", nil, "show the tools of this app; may be repeated")
	flags.StringArrayVar(&f.hiddenTools, "exclude-tool", nil, "hide tools with this full name, even if another flag shows them; may be repeated")
	flags.StringArrayVar(&f.hiddenApps, "exclude-app", nil, "hide the tools of this app; may be repeated")
	flags.BoolVar(&f.readOnly, "read-only", false, "show only tools that declare themselves read-only")
	flags.StringArrayVar(&f.renaming, "rename", nil, "FULL_NAME=NAME: rename a tool; NAME replaces the part after the app's name. May be repeated")
	flags.StringVar(&f.surface, "surface", "", "how tools are listed to MCP clients that do not choose: full or search")
	flags.StringArrayVar(&f.roles, "role", nil, "members of the workspace with this role, admin or member, see nothing else; may be repeated")
	flags.StringArrayVar(&f.groups, "group", nil, "people in this group at the identity provider see nothing else; may be repeated")
	return cmd
}

// definition returns the view described by the flags.
func (f *viewFlags) definition(cmd *cobra.Command, name string) (core.View, error) {
	rules := slices.Concat(f.tools, f.apps, f.hiddenTools, f.hiddenApps, f.renaming)
	if f.file != "" {
		if len(rules)+len(f.roles)+len(f.groups) > 0 || f.readOnly || f.surface != "" {
			return core.View{}, errors.New("--file contains the whole definition; leave the other flags out")
		}
		return readView(cmd, f.file, name)
	}
	if len(rules) == 0 && !f.readOnly && f.surface == "" {
		return core.View{}, errors.New("specify what the view shows: use --tool, --app, --exclude-tool, --exclude-app, --read-only, --rename, --surface or --file")
	}
	v := core.View{Name: name, Include: rulesOf(f.tools, f.apps), Exclude: rulesOf(f.hiddenTools, f.hiddenApps), Tools: map[string]core.Relabel{}, Surface: f.surface, Groups: f.groups}
	for _, role := range f.roles {
		v.Roles = append(v.Roles, core.Role(role))
	}
	if f.readOnly {
		writes := false
		v.Exclude = append(v.Exclude, core.ToolRule{ReadOnly: &writes})
	}
	for _, one := range f.renaming {
		full, own, ok := strings.Cut(one, "=")
		if !ok {
			return core.View{}, fmt.Errorf("--rename %s is not FULL_NAME=NAME", one)
		}
		v.Tools[full] = core.Relabel{Name: own}
	}
	return v, nil
}

func rulesOf(tools, apps []string) []core.ToolRule {
	rules := []core.ToolRule{}
	for _, tool := range tools {
		rules = append(rules, core.ToolRule{Tool: tool})
	}
	for _, app := range apps {
		rules = append(rules, core.ToolRule{App: app})
	}
	return rules
}

// readView reads a definition. An unknown key is an error, because a misspelled rule would hide nothing.
func readView(cmd *cobra.Command, path, name string) (v core.View, err error) {
	var text []byte
	if path == "-" {
		text, err = io.ReadAll(cmd.InOrStdin())
	} else {
		text, err = os.ReadFile(path) //nolint:gosec // the person at the command line chooses the path
	}
	if err != nil {
		return v, err
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	v.Name = name
	return v, nil
}
