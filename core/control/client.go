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
)

// ErrNotRunning tells that no server runs on a home.
var ErrNotRunning = errors.New("no server is running on this home")

// Client speaks to the server of a home.
type Client struct{ http *http.Client }

// Dial returns a client for the server of a home. It connects with the first command.
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

// Reload asks the server to read its configuration again. The error is the server's reason, or
// ErrNotRunning.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	var r Reloaded
	err := c.ask(ctx, http.MethodPost, "/reload", &r)
	return r, err
}

// Plan asks what Reload would change.
func (c *Client) Plan(ctx context.Context) (Plan, error) {
	var p Plan
	err := c.ask(ctx, http.MethodPost, "/plan", &p)
	return p, err
}

// Plugins asks how the plugins are; ErrNotRunning without a server.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	var p []Plugin
	err := c.ask(ctx, http.MethodGet, "/plugins", &p)
	return p, err
}

// Apps asks for the apps of all workspaces; ErrNotRunning without a server.
func (c *Client) Apps(ctx context.Context) ([]App, error) {
	var all []App
	err := c.ask(ctx, http.MethodGet, "/apps", &all)
	return all, err
}

// Status asks where the server listens and what it is; ErrNotRunning without a server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.ask(ctx, http.MethodGet, "/status", &s)
	return s, err
}

// OwnerToken asks for a bearer token of the API that acts as the owner, until the server ends; ErrNotRunning without a
// server.
func (c *Client) OwnerToken(ctx context.Context) (string, error) {
	var t ownerToken
	err := c.ask(ctx, http.MethodPost, "/owner", &t)
	return t.Token, err
}

// Readiness asks for the outcome of each check of /readyz; ErrNotRunning without a server.
func (c *Client) Readiness(ctx context.Context) ([]Check, error) {
	var all []Check
	err := c.ask(ctx, http.MethodGet, "/readiness", &all)
	return all, err
}

// LogLevels changes levels of the log by component, and returns all that are in force; ErrNotRunning
// without a server.
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

func (c *Client) ask(ctx context.Context, method, path string, into any) error {
	res, err := c.send(ctx, method, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return json.NewDecoder(res.Body).Decode(into)
}

// send sends a command. The body of the response must be closed.
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
