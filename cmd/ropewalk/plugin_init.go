package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/skeleton"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/plugins"
)

// tidyTimeout is how long `go mod tidy` may take, downloads included.
const tidyTimeout = 2 * time.Minute

func pluginInitCommand() *cobra.Command {
	o := skeleton.Options{}
	cmd := &cobra.Command{
		Use: "init KIND NAME", Short: "Write the beginning of a plugin in Go into ./NAME", Args: cobra.ExactArgs(2),
		Long: "Writes a plugin of the kind auth, sessionstore or registry into ./NAME: a module of its own that builds and passes " +
			"its kind's conformance kit, for you to change. A ropewalk that was built in a checkout has the module use the SDK of " +
			"that checkout.",
		Example: "  ropewalk plugin init sessionstore demo && cd demo && go build && ropewalk plugin test ./demo",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Kind, o.Name = plugins.Kind(args[0]), args[1]
			o.SDK.Version = version
			if o.SDK.Dir == "" {
				o.SDK.Dir = skeleton.Checkout()
			}
			dir, err := filepath.Abs(o.Name)
			if err != nil {
				return err
			}
			if o.SDK.Dir, err = absoluteOrNone(o.SDK.Dir); err != nil {
				return err
			}
			if err := skeleton.Write(dir, o); err != nil {
				return err
			}
			if err := tidy(cmd.Context(), dir); err != nil {
				cmd.PrintErrf("go mod tidy failed in %s; run it again when what it misses is there:\n%v\n", dir, err)
			}
			cmd.Printf("A plugin of the kind %s is in %s. Next:\n\n  cd %s && go build && ropewalk plugin test ./%s\n", o.Kind, dir, o.Name, o.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Module, "module", "", "path of the plugin's module (default example.com/NAME)")
	cmd.Flags().StringVar(&o.SDK.Dir, "sdk", "", "checkout of Ropewalk to take the SDK from (default the one this ropewalk was built in, else its release)")
	return cmd
}

func absoluteOrNone(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	return filepath.Abs(dir)
}

// tidy runs `go mod tidy` in dir.
func tidy(ctx context.Context, dir string) error {
	env := config.HostEnvironment()
	tool, err := env.LookPath("go")
	if err != nil {
		return err
	}
	var said bytes.Buffer
	c := process.Command{Path: tool, Args: []string{"mod", "tidy"}, Dir: dir, Stderr: &said}
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	p, err := process.Start(c)
	if err != nil {
		return err
	}
	_ = p.Stdin().Close()
	_, _ = io.Copy(io.Discard, p.Stdout())
	ctx, cancel := context.WithTimeout(ctx, tidyTimeout)
	defer cancel()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Stop(context.WithoutCancel(ctx), 0))
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
