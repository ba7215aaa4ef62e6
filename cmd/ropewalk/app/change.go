package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

func configureCommand(c *cli.Connection) *cobra.Command {
	var env, config []string
	cmd := &cobra.Command{
		Use: "configure NAME", Short: "Change the settings of an app; it restarts if necessary", Args: cobra.ExactArgs(1),
		Long: "Change the settings of an app. Settings that you do not mention stay as they are. The app restarts if " +
			"necessary. Give secrets as `--env NAME`: the value is taken from your own environment.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{}
			for field, given := range map[string][]string{"env": env, "userConfig": listed(config)} {
				values, err := environment(given)
				if err != nil {
					return cli.Usage(err)
				}
				if values != nil {
					body[field] = values
				}
			}
			if len(body) == 0 {
				return cli.Usage(errors.New("nothing to change: give --env or --set"))
			}
			return do(c, cmd, http.MethodPatch, args[0], "", body, func(o *cli.Output, a entry) error {
				o.Line("%s %s is %s", a.Name, a.Version, o.State(a.Status))
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&env, "env", nil, "NAME=VALUE, or NAME for the value in your environment; may be repeated")
	cmd.Flags().StringArrayVar(&config, "set", nil, "a user_config field from the manifest, NAME=VALUE; may be repeated, also for one field that takes several values")
	return cmd
}

func updateCommand(c *cli.Connection) *cobra.Command {
	var version, file string
	var d decisions
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Update an app to its newest version, or to a given one", Args: cobra.ExactArgs(1),
		Long: "Update an app to its newest version, or to a given one. Data and settings stay. If the new version does " +
			"not start, the old one is restored. If the app was installed from an uploaded file, specify the new one with " +
			"--file.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return update(cmd, c, args[0], version, file, &d)
		},
	}
	d.bind(cmd.Flags())
	cmd.Flags().StringVar(&version, "version", "", "version to update to (default the newest)")
	cmd.Flags().StringVar(&file, "file", "", "an .mcpb file with the new version, for an app that was installed from an uploaded file")
	cmd.MarkFlagsMutuallyExclusive("version", "file")
	return cmd
}

// update updates an app and prints the old and new versions.
func update(cmd *cobra.Command, c *cli.Connection, name, version, file string, d *decisions) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var before struct {
		Version, Since string
		Source         struct{ Kind string }
	}
	if err := client.Get(cmd.Context(), appPath(name), nil, &before); err != nil {
		return named(cmd.Context(), client, name, err)
	}
	var answer json.RawMessage
	body := map[string]any{}
	if version != "" {
		body["version"] = version
	}
	decided := d.given(cmd, local(client.Server))
	if decided != nil {
		body["permissions"] = decided
	}
	err = d.asking(cmd, client, name, decided, func() error {
		if file != "" {
			return upload(cmd, client, &request{Path: file, ServerName: name, Permissions: decided}, true, &answer)
		}
		return client.Do(cmd.Context(), http.MethodPost, appPath(name)+"/update", body, &answer)
	})
	if err != nil {
		return named(cmd.Context(), client, name, err)
	}
	var after struct{ Since string }
	if err := client.Get(cmd.Context(), appPath(name), nil, &after); err != nil {
		after.Since = before.Since // it is installed, which is what the caller asked for
	}
	return cli.Print(c, cmd, answer, func(o *cli.Output, a entry) error {
		what := "is up to date"
		switch {
		case a.Version != before.Version:
			what = "was updated from " + before.Version
		case after.Since != before.Since, before.Source.Kind == "path":
			what = "was reinstalled at the same version"
		}
		o.Line("%s %s %s; it is %s", a.Name, a.Version, what, o.State(a.Status))
		return nil
	})
}

func logsCommand(c *cli.Connection) *cobra.Command {
	var follow bool
	var tail int
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Print what an app wrote to standard error", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			query := url.Values{"tail": {strconv.Itoa(tail)}}
			path := appPath(args[0]) + "/logs?"
			if follow {
				query.Set("follow", "true")
				err := client.Stream(cmd.Context(), http.MethodGet, path+query.Encode(), nil, func(e apiclient.Event) error { return printLog(cmd, c, e.Data) })
				return named(cmd.Context(), client, args[0], err)
			}
			var answer struct{ Lines []json.RawMessage }
			if err := client.Get(cmd.Context(), path[:len(path)-1], query, &answer); err != nil {
				return named(cmd.Context(), client, args[0], err)
			}
			if len(answer.Lines) == 0 && !c.JSON {
				cmd.PrintErrf("%s has written nothing to standard error.\n", args[0])
			}
			for _, line := range answer.Lines {
				if err := printLog(cmd, c, line); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing lines as they arrive")
	cmd.Flags().IntVar(&tail, "tail", 100, "how many of the last lines to print")
	return cmd
}

// printLog prints a line of a log, which is a string or an object that contains one.
func printLog(cmd *cobra.Command, c *cli.Connection, line json.RawMessage) error {
	if c.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), string(line)+"\n")
	}
	var text string
	var object struct{ Line, Text, Message string }
	switch {
	case json.Unmarshal(line, &text) == nil:
	case json.Unmarshal(line, &object) == nil:
		text = object.Line + object.Text + object.Message
	}
	o := cli.NewOutput(cmd.OutOrStdout())
	o.Line("%s", o.Text(text))
	return nil
}
