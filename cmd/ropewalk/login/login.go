package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// started is a login that is waiting for the person.
type started struct {
	Token, Code, URL, LoginURL string
	ExpiresAt                  time.Time
	IntervalSeconds            int
}

// session describes whose login it is.
type session struct {
	User struct{ ID, Email, DisplayName, OrgRole string }
}

// name returns the name to show for the user.
func (s session) name() string {
	for _, name := range []string{s.User.Email, s.User.DisplayName} {
		if name != "" {
			return cli.Printable(name)
		}
	}
	return cli.Printable(s.User.ID)
}

// Command returns `ropewalk login`.
func Command() *cobra.Command {
	c := &cli.Connection{}
	var device, key bool
	cmd := &cobra.Command{
		Use: "login [URL]", Short: "Log in to a server; commands then run as you", Args: cobra.MaximumNArgs(1),
		Long: "Log in to a server, here or elsewhere. A browser opens and asks which provider you have an account " +
			"with. If this computer has no browser, or with --device, you open a page on any other computer and " +
			"type a code.\n\nThe login is stored in the operating system's keyring, or else in a file that only you " +
			"can read. It lasts at most 7 days, and ends with `ropewalk logout`. If the server has no identity " +
			"provider, the command asks for an API key.",
		Example: "  ropewalk login https://tools.example.com\n  ropewalk whoami",
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := address(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			to, err := authenticate(cmd, server, device, key)
			if err != nil {
				return err
			}
			return save(cmd, c, to)
		},
	}
	c.Bind(cmd)
	cmd.Flags().BoolVar(&device, "device", false, "show a code to type on another computer, instead of opening a browser")
	cmd.Flags().BoolVar(&key, "key", false, "ask for an API key, or read it from standard input")
	return cmd
}

// address returns the server to log in to, without credentials.
func address(ctx context.Context, c *cli.Connection, args []string) (*apiclient.Client, error) {
	if len(args) == 0 {
		client, err := c.PersonClient(ctx)
		if err != nil {
			return nil, err
		}
		return &apiclient.Client{Server: client.Server, ServerFrom: client.ServerFrom, HTTP: client.HTTP}, nil
	}
	return &apiclient.Client{Server: cli.ServerAddress(args[0])}, nil
}

// authenticate returns the client with a login, or with a key.
func authenticate(cmd *cobra.Command, server *apiclient.Client, device, key bool) (*apiclient.Client, error) {
	if key {
		return withKey(cmd, server)
	}
	if err := server.Get(cmd.Context(), "/v1/auth/session", nil, &session{}); err == nil {
		return nil, fmt.Errorf("the server at %s needs no login, because it runs in dev mode, where everybody is the owner", server.Server)
	} else if _, answered := errors.AsType[*apiclient.Error](err); !answered {
		return nil, err
	}
	to, err := withBrowser(cmd, server, device)
	if !apiclient.IsCode(err, "not_configured") {
		return to, err
	}
	if !cli.IsTerminal(cmd.InOrStdin()) {
		return nil, fmt.Errorf("the server at %s has no identity provider to log in with; create an API key on its machine (`ropewalk key create NAME`), and run `ropewalk login --key` here", server.Server)
	}
	cmd.PrintErrln("The server has no identity provider to log in with. `ropewalk key create NAME` creates an API key on its machine.")
	return withKey(cmd, server)
}

func withKey(cmd *cobra.Command, server *apiclient.Client) (*apiclient.Client, error) {
	text, err := cli.ReadKey(cmd)
	server.Key, server.KeyFrom = text, "the prompt"
	if err == nil && text == "" {
		err = errors.New("no key was given")
	}
	return server, err
}

// withBrowser starts a login and waits until the person has agreed in a browser.
func withBrowser(cmd *cobra.Command, server *apiclient.Client, device bool) (*apiclient.Client, error) {
	host, _ := os.Hostname()
	if host == "" {
		host = "a computer"
	}
	ask := map[string]any{"name": host}
	var back *listener
	if !device && hasBrowser() {
		var err error
		if back, err = listen(cmd.Context()); err != nil {
			return nil, err
		}
		defer back.close()
		ask["redirectUri"] = back.address
	}
	var s started
	if err := server.Do(cmd.Context(), http.MethodPost, "/v1/auth/device", ask, &s); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadlineCause(cmd.Context(), s.ExpiresAt, errors.New("nobody logged in within ten minutes; run `ropewalk login` again"))
	defer cancel()
	server.Login = s.Token
	if back == nil {
		cmd.PrintErrf("Open %s on any computer and type the code\n\n    %s\n\n", cli.Printable(s.URL), cli.Printable(s.Code))
		return server, poll(ctx, server, time.Duration(max(1, s.IntervalSeconds))*time.Second)
	}
	cmd.PrintErrf("The browser asks whether to allow the code %s. If none opens, visit\n%s\n", cli.Printable(s.Code), cli.Printable(s.LoginURL))
	open(ctx, s.LoginURL)
	return server, back.wait(ctx, func(code string) error {
		server.Login = s.Token + code
		return server.Get(ctx, "/v1/auth/session", nil, &session{})
	})
}

// poll asks for the login until it is complete.
func poll(ctx context.Context, server *apiclient.Client, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		err := server.Get(ctx, "/v1/auth/session", nil, &session{})
		if refused, answered := errors.AsType[*apiclient.Error](err); err == nil || answered && refused.Status < 500 && refused.Status != http.StatusUnauthorized && refused.Status != http.StatusTooManyRequests {
			return err
		}
	}
}

// save checks a login and stores it in a context, which becomes the current one.
func save(cmd *cobra.Command, c *cli.Connection, to *apiclient.Client) error {
	var who session
	if err := to.Get(cmd.Context(), "/v1/auth/session", nil, &who); err != nil {
		return err
	}
	all, err := cli.LoadContexts()
	if err != nil {
		return err
	}
	name := c.ContextFor(all, to.Server)
	next := all.Contexts[name]
	next.Server, next.Key = to.Server, to.Key
	next.KeepLogin(to.Login)
	all.Contexts[name] = next
	all.Current = name
	if err := all.Save(); err != nil {
		return err
	}
	cmd.PrintErrf("Logged in at %s as %s. Commands now use the context %s.\n", cli.Printable(to.Server), who.name(), cli.Printable(name))
	return nil
}
