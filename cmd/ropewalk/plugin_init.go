package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/skeleton"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/plugins"
)

// tidyTimeout is how long `go mod tidy` may take, including downloads.
const tidyTimeout = 2 * time.Minute

func pluginInitCommand() *cobra.Command {
	o := skeleton.Options{}
	cmd := &cobra.Command{
		Use: "init KIND NAME", Short: "Write a starter plugin in Go, Python or Java into ./NAME", Args: cobra.ExactArgs(2),
		Long: "Write a starter plugin into ./NAME: a complete project for you to change. It builds, passes the conformance kit for its kind " +
			"and has a workflow for CI. KIND is " + kindNames() + ".\n\n" +
			"A Go plugin needs Go, and the module proxy to download the SDK from the same release as this ropewalk. A development build takes " +
			"the SDK from the checkout in which it was built. A Python plugin needs Python 3.10 with venv. A Java plugin needs JDK 17 and Maven 3.8.",
		Example: "  ropewalk plugin init sessionstore demo && cd demo && go build && ropewalk plugin test ./demo\n" +
			"  ropewalk plugin init sessionstore demo --lang python && cd demo && ./build && ropewalk plugin test ./demo\n" +
			"  ropewalk plugin init sessionstore demo --lang java && cd demo && mvn -q package && ropewalk plugin test ./demo",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Kind, o.Name = plugins.Kind(args[0]), args[1]
			dir, err := filepath.Abs(o.Name)
			if err != nil {
				return err
			}
			next := map[string]string{"python": "./build", "java": "mvn -q package"}[o.Language]
			if o.Language == "go" {
				if o.SDK, err = sdkOf(o.SDK); err != nil {
					return err
				}
				o.Release = o.SDK.Version
			} else {
				if err := onlyInGo(cmd, "module", "sdk", "sdk-version"); err != nil {
					return err
				}
				o.Release = version
			}
			if err := skeleton.Write(dir, o); err != nil {
				return err
			}
			if o.Language == "go" {
				next = finishModule(cmd, dir, o.SDK)
			}
			cmd.Printf("The new %s plugin is in %s. Next:\n\n  cd %s && %s && ropewalk plugin test ./%s\n", o.Kind, dir, o.Name, next, o.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Language, "lang", "go", "language of the plugin: go, java or python")
	cmd.Flags().StringVar(&o.Module, "module", "", "in Go: path of the plugin's module (default example.com/NAME)")
	cmd.Flags().StringVar(&o.SDK.Dir, "sdk", "", "in Go: Ropewalk checkout to take the SDK from (default for a development build: the one in which it was built)")
	cmd.Flags().StringVar(&o.SDK.Version, "sdk-version", "", "in Go: Ropewalk release to take the SDK from, such as v1.2.3 (default this ropewalk's release)")
	cmd.MarkFlagsMutuallyExclusive("sdk", "sdk-version")
	return cmd
}

// onlyInGo returns an error for flags that have no effect with other languages.
func onlyInGo(cmd *cobra.Command, flags ...string) error {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s works only with --lang go; leave it out", flag)
		}
	}
	return nil
}

// finishModule completes go.mod, and returns the command that builds the plugin.
func finishModule(cmd *cobra.Command, dir string, sdk skeleton.SDK) string {
	cmd.Println(fromWhere(sdk))
	err := tidy(cmd.Context(), dir)
	switch {
	case err == nil:
		return "go build"
	case errors.Is(err, fs.ErrNotExist):
		cmd.PrintErrln("Go is needed to build it, but is not on your PATH. Install it from https://go.dev/dl first.")
	default:
		cmd.PrintErrf("go mod tidy failed in %s:\n%v\n", dir, err)
	}
	return "go mod tidy && go build"
}

// sdkOf determines where the SDK comes from: the flags if they are set, or else the release of this build, or else the
// checkout that it was built in.
func sdkOf(asked skeleton.SDK) (skeleton.SDK, error) {
	switch {
	case asked.Dir != "":
		dir, err := filepath.Abs(asked.Dir)
		return skeleton.SDK{Dir: dir}, err
	case asked.Version != "":
		return asked, nil
	case skeleton.Release(version) != "":
		return skeleton.SDK{Version: version}, nil
	}
	if module := moduleRelease(); module != "" {
		return skeleton.SDK{Version: module}, nil
	}
	return skeleton.SDK{Dir: skeleton.Checkout()}, nil
}

// moduleRelease returns the version of a build by `go install …@version`, or "" for other builds.
func moduleRelease() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Sum == "" {
		return ""
	}
	return skeleton.Release(info.Main.Version)
}

// fromWhere describes where a plugin's module gets the SDK from.
func fromWhere(sdk skeleton.SDK) string {
	if sdk.Dir != "" {
		return "It takes the SDK from the checkout " + sdk.Dir + ", with a replace line in go.mod. Require a release before you share it; its README.md explains how."
	}
	return "It takes the SDK from the release " + skeleton.Release(sdk.Version) + "."
}

// tidy runs `go mod tidy` in dir.
func tidy(ctx context.Context, dir string) error {
	env := config.HostEnvironment()
	tool, err := env.LookPath("go")
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	c := process.Command{Path: tool, Args: []string{"mod", "tidy"}, Dir: dir, Stderr: &stderr}
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
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
