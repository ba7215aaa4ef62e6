// Package conversation contains the `ropewalk conversation` commands.
package conversation

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// Command returns `ropewalk conversation`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	cmd := &cobra.Command{Use: "conversation", Aliases: []string{"conversations"}, Short: "List, show, export and delete conversations"}
	c.Bind(cmd)
	cmd.AddCommand(listCommand(c), showCommand(c), exportCommand(c), deleteCommand(c))
	return cmd
}

func path(id string) string { return "/v1/conversations/" + url.PathEscape(id) }

// summary is a conversation in a list (docs/api.md 6.1).
type summary struct {
	ID, UpdatedAt, Preview string
	Title                  *string
	MessageCount           int
}

func listCommand(c *cli.Connection) *cobra.Command {
	var search string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List your conversations in the workspace, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if search != "" {
				query.Set("search", search)
			}
			return cli.Get(c, cmd, "/v1/conversations", query, func(o *cli.Output, r struct{ Conversations []summary }) error {
				if len(r.Conversations) == 0 {
					if search != "" {
						cmd.PrintErrln("None of your conversations contains these words.")
						return nil
					}
					cmd.PrintErrln("You have no conversations; `ropewalk chat` starts one.")
					return nil
				}
				rows := make([][]string, len(r.Conversations))
				for i, s := range r.Conversations {
					title := s.Preview
					if s.Title != nil && *s.Title != "" {
						title = *s.Title
					}
					rows[i] = []string{s.ID, s.UpdatedAt, strconv.Itoa(s.MessageCount), shorten(title)}
				}
				return o.Table([]string{"ID", "UPDATED", "MESSAGES", "TITLE"}, rows)
			})
		},
	}
	cmd.Flags().StringVar(&search, "search", "", "list only conversations that contain these words")
	cmd.Flags().IntVar(&limit, "limit", 20, "maximum number of conversations, up to 100")
	return cmd
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return text
}

func showCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Print the messages and tool calls of a conversation", Args: cobra.ExactArgs(1),
		Long: "Print the messages and tool calls of a conversation in order. Each call is shown as app__tool. " +
			"Arguments, and the results of failed calls, are cut to one line; --json prints them in full.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Get(c, cmd, path(args[0])+"/history", nil, func(o *cli.Output, r struct{ Messages []message }) error {
				for _, m := range r.Messages {
					m.print(o)
				}
				return nil
			})
		},
	}
}

func exportCommand(c *cli.Connection) *cobra.Command {
	var format, file string
	cmd := &cobra.Command{
		Use: "export ID", Short: "Export a conversation as JSON or Markdown", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "json" && format != "markdown" {
				return cli.Usage(fmt.Errorf("--format must be json or markdown, not %q", format))
			}
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var text []byte
			if err := client.Get(cmd.Context(), path(args[0])+"/export", url.Values{"format": {format}}, &text); err != nil {
				return err
			}
			if file != "" {
				return os.WriteFile(file, text, 0o600)
			}
			if format == "json" {
				return cli.WriteJSON(cmd.OutOrStdout(), string(text))
			}
			_, err = cli.Plain(cmd.OutOrStdout()).Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "json or markdown")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write (default standard output)")
	return cmd
}

func deleteCommand(c *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a conversation", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Do(c, cmd, http.MethodDelete, path(args[0]), nil, func(o *cli.Output, r struct{ ID string }) error {
				o.Line("%s was deleted", r.ID)
				return nil
			})
		},
	}
}
