package rival

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/bench/load"
)

// TestMain runs this binary as a bundle if an environment variable says so.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "bundle":
		err = Bundle(context.Background(), 3)
	case len(os.Args) > 1 && os.Args[1] == "light":
		err = Light(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestEveryRivalServesTheSameTool(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(ctx context.Context, out io.Writer) error{
		"direct":                func(ctx context.Context, out io.Writer) error { return Direct(ctx, 3, out) },
		"gateway":               func(ctx context.Context, out io.Writer) error { return Gateway(ctx, []string{self, "bundle"}, out) },
		"relay":                 func(ctx context.Context, out io.Writer) error { return Relay(ctx, []string{self, "bundle"}, out) },
		"relay, light bundle":   func(ctx context.Context, out io.Writer) error { return Relay(ctx, []string{self, "light"}, out) },
		"gateway, light bundle": func(ctx context.Context, out io.Writer) error { return Gateway(ctx, []string{self, "light"}, out) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r, w := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, w) }()
			url, err := bufio.NewReader(r).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			target := load.Target{URL: strings.TrimSpace(url), Tool: EchoTool}.Padded(100)
			for _, kind := range []load.Kind{load.Calls, load.Lists} {
				got, err := load.Run(ctx, target, load.Plan{Kind: kind, Concurrency: 4, Total: 40})
				if err != nil || got.Requests != 40 || got.Failed != 0 {
					t.Errorf("%s: %+v %v", kind, got, err)
				}
			}
			c, err := load.Dial(target)
			if err == nil {
				err = c.Open()
			}
			if err == nil {
				err = c.Call()
			}
			if err != nil || !strings.Contains(string(c.Answer()), target.Text) {
				t.Errorf("the response should contain the text: %v %s", err, c.Answer())
			}
			c.Hangup()
			cancel()
			<-ended
		})
	}
}
