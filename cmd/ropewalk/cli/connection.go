package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// Connection determines which server a group's commands talk to, and how they print.
type Connection struct {
	server    string
	workspace string
	context   string
	home      string
	JSON      bool // print the API's response
}

// Bind adds the connection flags to a command and its subcommands.
func (c *Connection) Bind(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&c.server, "server", "", "address of the server (default ROPEWALK_SERVER, else the context, else the server running for --home)")
	flags.StringVar(&c.workspace, "workspace", "", "id or name of the workspace (default ROPEWALK_WORKSPACE, else the context, else your only or default one)")
	flags.StringVar(&c.context, "context", "", "named context (default ROPEWALK_CONTEXT, else the current one)")
	flags.StringVar(&c.home, "home", "", "home of a server on this machine (default ROPEWALK_HOME, else ~/.ropewalk)")
	flags.BoolVar(&c.JSON, "json", false, "print JSON as the API returns it")
}

// Client returns a client for the server. Flags take precedence over the environment, and the environment over
// the context. Otherwise it is the server that is running for the home or, if there is none, the address in
// the home's configuration. It is an error if a home was chosen and has neither.
func (c *Connection) Client(ctx context.Context) (*apiclient.Client, error) {
	client, err := c.PersonClient(ctx)
	if err != nil || client.Workspace == "" {
		return client, err
	}
	client.Workspace, err = Workspace(ctx, client, client.Workspace)
	return client, err
}

// PersonClient is like Client, for requests that are not about a workspace. The client's workspace may be a name.
func (c *Connection) PersonClient(ctx context.Context) (*apiclient.Client, error) {
	contextName, named, err := c.namedContext()
	if err != nil {
		return nil, err
	}
	client := &apiclient.Client{Workspace: cmp.Or(c.workspace, os.Getenv("ROPEWALK_WORKSPACE"), named.Workspace)}
	server, from := firstFrom(source{"--server", c.server}, source{"ROPEWALK_SERVER", os.Getenv("ROPEWALK_SERVER")}, source{contextName, named.Server})
	client.Server, client.ServerFrom = ServerAddress(server), from
	if client.Server != ServerAddress(named.Server) { // no other server gets the credentials of a context
		named.Key, named.Login = "", ""
	}
	client.Key, client.KeyFrom = firstFrom(source{"ROPEWALK_API_KEY", os.Getenv("ROPEWALK_API_KEY")}, source{contextName, named.Key})
	if client.Server != "" {
		client.Login, err = named.Token()
		return client, err
	}
	status, err := c.Local(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		home := cmp.Or(c.home, os.Getenv("ROPEWALK_HOME"))
		if _, missing := os.Stat(filepath.Join(home, "ropewalk.yaml")); home != "" && errors.Is(missing, fs.ErrNotExist) { // the default address may belong to another home's server
			return nil, fmt.Errorf("no server is using the home %s (`ropewalk up` starts one there; --server selects another)", home)
		}
		var failed error
		client.Server, failed = config.LoadAddress(config.Options{Home: c.home, Environment: config.HostEnvironment()})
		if client.Server == "" && failed == nil {
			failed = fmt.Errorf("%w; its http.port is 0, so only a running server has an address (`ropewalk up` starts one here; --server selects another)", err)
		}
		return client, failed
	}
	if err != nil {
		return nil, err
	}
	client.Server, client.Public, client.HTTP = status.URL, status.BaseURL, apiclient.Pinned(status.Certificate)
	if client.Key == "" { // the key of the server on this machine
		client.Key, client.KeyFrom = firstFrom(source{"SERVICE_API_KEY", os.Getenv("SERVICE_API_KEY")})
	}
	if client.Key == "" && !status.Dev { // anyone who may use the control socket acts as the owner
		client.Key, err = c.ownerToken(ctx)
	}
	return client, err
}

func (c *Connection) ownerToken(ctx context.Context) (string, error) {
	home, err := config.FindHome(c.home, config.HostEnvironment())
	if err != nil {
		return "", err
	}
	return control.Dial(home).OwnerToken(ctx)
}

// Local returns the status of the server that is running for the home, or control.ErrNotRunning.
func (c *Connection) Local(ctx context.Context) (control.Status, error) {
	home, err := config.FindHome(c.home, config.HostEnvironment())
	if err != nil {
		return control.Status{}, err
	}
	return control.Dial(home).Status(ctx)
}

// ContextName returns the name of the chosen context, or else of the current one; "" if there is neither.
func (c *Connection) ContextName(all Contexts) (string, error) {
	name := cmp.Or(c.context, os.Getenv("ROPEWALK_CONTEXT"), all.Current)
	if _, ok := all.Contexts[name]; !ok && name != "" {
		return "", Usage(fmt.Errorf("there is no context %q; `ropewalk context list` shows them", name))
	}
	return name, nil
}

// ContextFor returns the name of the context in which to store a login to a server. That is the chosen
// context, or else the current one if it is for that server, or else one named after the server.
func (c *Connection) ContextFor(all Contexts, server string) string {
	name := cmp.Or(c.context, os.Getenv("ROPEWALK_CONTEXT"))
	if name == "" && all.Contexts[all.Current].Server == server {
		name = all.Current
	}
	if u, err := url.Parse(server); name == "" && err == nil {
		name = u.Host
	}
	return name
}

// namedContext returns the context to use, and its name for errors.
func (c *Connection) namedContext() (string, Context, error) {
	all, err := LoadContexts()
	if err != nil {
		return "", Context{}, err
	}
	name := cmp.Or(c.context, os.Getenv("ROPEWALK_CONTEXT"))
	if name == "" {
		return fmt.Sprintf("the current context %q (`ropewalk context list`)", all.Current), all.Contexts[all.Current], nil
	}
	named, ok := all.Contexts[name]
	if !ok {
		return "", Context{}, Usage(fmt.Errorf("there is no context %q; `ropewalk context list` shows them", name))
	}
	return fmt.Sprintf("the context %q", name), named, nil
}

// ServerAddress returns a server's address as a person wrote it, with https:// if it has no scheme, and without slashes
// at the end.
func ServerAddress(text string) string {
	if text != "" && !strings.Contains(text, "://") {
		text = "https://" + text
	}
	return strings.TrimRight(text, "/")
}

// source is a setting and its value.
type source struct{ name, value string }

// firstFrom returns the first value that is set, and its setting.
func firstFrom(sources ...source) (value, from string) {
	for _, s := range sources {
		if s.value != "" {
			return s.value, s.name
		}
	}
	return "", ""
}

// Get requests a path and prints the response as Print does.
func Get[T any](c *Connection, cmd *cobra.Command, path string, query url.Values, render func(o *Output, value T) error) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return Do(c, cmd, http.MethodGet, path, nil, render)
}

// Do sends a request, with body as JSON unless it is nil, and prints the response as Print does.
func Do[T any](c *Connection, cmd *cobra.Command, method, path string, body any, render func(o *Output, value T) error) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var response json.RawMessage
	if err := client.Do(cmd.Context(), method, path, body, &response); err != nil {
		return err
	}
	return Print(c, cmd, response, render)
}

// Print writes a response from the API to standard output: unchanged with --json, or else through render,
// with the response decoded into a T.
func Print[T any](c *Connection, cmd *cobra.Command, answer json.RawMessage, render func(w *Output, value T) error) error {
	if c.JSON {
		return PrintJSON(cmd.OutOrStdout(), answer)
	}
	var value T
	if err := json.Unmarshal(answer, &value); err != nil {
		return fmt.Errorf("the response does not match the API: %w", err)
	}
	o := NewOutput(cmd.OutOrStdout())
	if o.terminal {
		clean(reflect.ValueOf(&value))
	}
	return render(o, value)
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	return WriteJSON(w, text.String())
}

// WriteJSON writes a JSON text unchanged, except that characters a terminal would interpret are escaped on a
// terminal.
func WriteJSON(w io.Writer, text string) error {
	if IsTerminal(w) {
		text = EscapeJSON(text)
	}
	_, err := io.WriteString(w, text)
	return err
}
