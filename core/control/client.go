package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// ErrNotRunning means that no server is running for a home.
var ErrNotRunning = errors.New("no server is running for this home")

// Client sends commands to a home's server.
type Client struct{ http *http.Client }

// Dial returns a client for a home's server. It connects on the first command.
func Dial(home string) *Client {
	return &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			p, err := openPlace(home)
			if err != nil {
				return nil, err
			}
			defer func() { _ = p.Close() }()
			return p.dial(ctx)
		},
		DisableKeepAlives: true,
	}}}
}

// Reload asks the server to read its configuration again. The error is the server's reason, or ErrNotRunning.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	return ask[Reloaded](ctx, c, http.MethodPost, "/reload")
}

// Plan asks what Reload would change.
func (c *Client) Plan(ctx context.Context) (Plan, error) {
	return ask[Plan](ctx, c, http.MethodPost, "/plan")
}

// Plugins returns the state of the plugins, or ErrNotRunning if no server is running.
func (c *Client) Plugins(ctx context.Context) ([]pluginhost.Status, error) {
	return ask[[]pluginhost.Status](ctx, c, http.MethodGet, "/plugins")
}

// Apps returns the apps of all workspaces, or ErrNotRunning if no server is running.
func (c *Client) Apps(ctx context.Context) ([]App, error) {
	return ask[[]App](ctx, c, http.MethodGet, "/apps")
}

// Status describes the server. The error is ErrNotRunning if no server is running.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "/status")
}

// OwnerToken returns a bearer token for the API that acts as the owner until the server stops, or ErrNotRunning if no
// server is running.
func (c *Client) OwnerToken(ctx context.Context) (string, error) {
	t, err := ask[ownerToken](ctx, c, http.MethodPost, "/owner")
	return t.Token, err
}

// Readiness returns the result of each check of /readyz, or ErrNotRunning if no server is running.
func (c *Client) Readiness(ctx context.Context) ([]Check, error) {
	return ask[[]Check](ctx, c, http.MethodGet, "/readiness")
}

// LogLevels changes log levels by component and returns all levels in force, or ErrNotRunning if no server is running.
func (c *Client) LogLevels(ctx context.Context, change map[string]string) (map[string]string, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	res, err := c.send(ctx, http.MethodPatch, "/log/levels", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var all map[string]string
	return all, json.NewDecoder(res.Body).Decode(&all)
}

func ask[T any](ctx context.Context, c *Client, method, path string) (answer T, err error) {
	res, err := c.send(ctx, method, path, nil)
	if err != nil {
		return answer, err
	}
	defer func() { _ = res.Body.Close() }()
	err = json.NewDecoder(res.Body).Decode(&answer)
	return answer, err
}

// send sends a command. The caller must close the body of the response.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	var f failure
	if err := json.NewDecoder(res.Body).Decode(&f); err != nil {
		return nil, fmt.Errorf("the server answered %s", res.Status)
	}
	return nil, errors.New(f.Message)
}
