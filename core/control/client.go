package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	path := socketPath(home)
	return &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
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

// Plugins asks how the plugins are; ErrNotRunning without a server.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	var p []Plugin
	err := c.ask(ctx, http.MethodGet, "/plugins", &p)
	return p, err
}

// Status asks where the server listens and what it is; ErrNotRunning without a server.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.ask(ctx, http.MethodGet, "/status", &s)
	return s, err
}

func (c *Client) ask(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNotRunning
	}
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		var f failure
		if err := json.NewDecoder(res.Body).Decode(&f); err != nil {
			return fmt.Errorf("the server answered %s", res.Status)
		}
		return errors.New(f.Message)
	}
	return json.NewDecoder(res.Body).Decode(into)
}
