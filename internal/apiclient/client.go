package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client makes requests to one server. It is safe for concurrent use.
type Client struct {
	Server    string // base URL without a trailing slash
	Public    string // base URL at which others reach the server; "" means Server
	Key       string // API key or access token; "" in dev mode, or if Login is used
	Login     string // token from `ropewalk login`, used if there is no Key
	Workspace string // workspace id; "" means the caller's only or default one

	// ServerFrom and KeyFrom name the settings that Server and Key come from, for errors; may be "".
	ServerFrom, KeyFrom string

	HTTP *http.Client
}

// Pinned returns an HTTP client that accepts only one certificate, in DER, whatever its names and issuer. It
// returns nil if certificate is empty.
func Pinned(certificate []byte) *http.Client {
	if len(certificate) == 0 {
		return nil
	}
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyPeerCertificate compares the whole certificate instead
		VerifyPeerCertificate: func(shown [][]byte, _ [][]*x509.Certificate) error {
			if len(shown) == 0 || !bytes.Equal(shown[0], certificate) {
				return errors.New("the certificate does not belong to the server running on this home")
			}
			return nil
		},
	}
	return &http.Client{Transport: transport}
}

// maxResponse limits how much of a response is read, in bytes.
const maxResponse = 64 << 20

// Get requests a path with a query, and decodes the response into out.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.Do(ctx, http.MethodGet, path, nil, out)
}

// Do sends body as JSON, unless it is nil, and decodes the response into out, unless that is nil. A response
// that is not 2xx is an *Error.
func (c *Client) Do(ctx context.Context, method, path string, body, out any) error {
	var reader io.Reader
	contentType := ""
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader, contentType = bytes.NewReader(text), "application/json"
	}
	return c.Send(ctx, method, path, contentType, reader, out)
}

// Send sends body unchanged, and decodes the response into out, unless that is nil. A *[]byte receives it
// undecoded.
func (c *Client) Send(ctx context.Context, method, path, contentType string, body io.Reader, out any) error {
	res, err := c.open(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("read the response from %s: %w", c.Server, err)
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = text
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: the response does not match the API: %w", method, path, err)
	}
	return nil
}

// open sends a request and returns its response, which is 2xx. The caller must close the body.
func (c *Client) open(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+path, body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	switch {
	case c.Key != "":
		req.Header.Set("Authorization", "Bearer "+c.Key)
	case c.Login != "":
		req.AddCookie(&http.Cookie{Name: "service_session", Value: c.Login})
	}
	if c.Workspace != "" {
		req.Header.Set("X-Workspace-Id", c.Workspace)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, c.unreachable(req.Context(), err)
	}
	if res.StatusCode/100 != 2 {
		defer func() { _ = res.Body.Close() }()
		return nil, c.refusal(res)
	}
	return res, nil
}
