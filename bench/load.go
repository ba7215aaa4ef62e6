package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/bench/load"
)

func loadCommand() *cobra.Command {
	var url, tool, kind string
	var headers []string
	var concurrency, size int
	var duration time.Duration
	var calls int64
	var rate float64
	var asJSON bool
	cmd := &cobra.Command{
		Use: "load --url URL", Short: "Put load on one server", Args: cobra.NoArgs,
		Example: "  ropewalk-bench load --url http://127.0.0.1:27247/mcp --header 'X-Workspace-Id: ws_default' --tool sample__echo --concurrency 16",
		RunE: func(cmd *cobra.Command, _ []string) error {
			target := load.Target{URL: url, Tool: tool, Header: map[string]string{}}
			for _, h := range headers {
				name, value, ok := strings.Cut(h, ":")
				if !ok {
					return fmt.Errorf("--header %q is not of the form 'Name: value'", h)
				}
				target.Header[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
			if calls > 0 && !cmd.Flags().Changed("duration") {
				duration = 0
			}
			plan := load.Plan{Kind: load.Kind(kind), Concurrency: concurrency, Duration: duration, Total: calls, Rate: rate}
			r, err := load.Run(cmd.Context(), target.Padded(size), plan)
			if err != nil {
				return err
			}
			return printResult(cmd.OutOrStdout(), r, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "the server's endpoint")
	f.StringArrayVar(&headers, "header", nil, "a header to send with every request, as 'Name: value'; may be repeated")
	f.StringVar(&tool, "tool", "echo", "the tool to call; it gets one argument, text")
	f.StringVar(&kind, "kind", string(load.Calls), "what to do: call, list, or cycle (open a session, call, close it)")
	f.IntVar(&concurrency, "concurrency", 1, "clients, each with its own connection and session")
	f.DurationVar(&duration, "duration", 5*time.Second, "how long to run")
	f.Int64Var(&calls, "calls", 0, "how many requests to make; without --duration, there is no time limit")
	f.Float64Var(&rate, "rate", 0, "requests per second over all clients; 0 sends the next as soon as the server responds")
	f.IntVar(&size, "size", 200, "size of the arguments in bytes")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	_ = cmd.MarkFlagRequired("url") // the flag exists
	return cmd
}

func printResult(out io.Writer, r load.Result, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	_, err := fmt.Fprintf(out, "requests  %d\nfailed    %d\nper sec   %.0f\np50       %v\np99       %v\nmax       %v\n", r.Requests, r.Failed, r.PerSec, r.P50, r.P99, r.Max)
	if r.Error != "" {
		_, err = fmt.Fprintf(out, "error     %s\n", r.Error)
	}
	return err
}
