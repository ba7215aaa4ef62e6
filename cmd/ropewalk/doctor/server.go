package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

func (e *examination) checkConfiguration(cmd *cobra.Command) {
	c, err := e.o.Load(cmd)
	if err != nil {
		problems, several := errors.AsType[config.Problems](err)
		if !several {
			problems = config.Problems{{Message: err.Error()}}
		}
		for _, p := range problems {
			e.addProblem(p)
		}
		return
	}
	e.config = c
	source := c.File
	if source == "" {
		source = "no file: the defaults, in dev mode"
	}
	e.add("configuration", ok, source, "")
	for _, w := range c.Warnings {
		if slices.ContainsFunc(c.Models.WithoutKey(), func(name string) bool { return w == c.Models.KeyWarning(name) }) {
			continue // checkKeys reports it
		}
		e.add("configuration", warning, w, "change the setting, or leave it if you meant it")
	}
}

// addProblem reports a problem with the configuration. A running server has its own environment, so a variable
// that is not set here is only a warning.
func (e *examination) addProblem(p config.Problem) {
	switch {
	case p.Variable != "" && e.running != nil:
		e.add("configuration", warning, p.String()+" here; the running server may have it",
			"run doctor with the server's environment variables, such as those in its EnvironmentFile, to check what depends on the configuration")
	case p.Variable != "":
		e.add("configuration", failed, p.String(), "set "+p.Variable+" for the server and for doctor, or remove it from the file")
	case strings.Contains(p.Message, "permission denied"):
		e.add("configuration", failed, p.String(), "run doctor as the server's user, or choose another home with --home or ROPEWALK_HOME")
	case p.Path == "" && p.Line == 0 && strings.Contains(p.Message, "is not a directory; "):
		detail, remedy, _ := strings.Cut(p.Message, "; ")
		e.add("home", failed, detail, remedy)
	case p.Path == "" && p.Line == 0 && strings.Contains(p.Message, "cannot be read: "):
		e.add("configuration", failed, p.String(), "specify an existing file with --config, or omit --config to use <home>/ropewalk.yaml")
	default:
		e.add("configuration", failed, p.String(), "correct the file; `ropewalk config schema` describes every setting")
	}
}

// findServer asks the home's control socket for a running server.
func (e *examination) findServer(ctx context.Context) {
	status, err := control.Dial(e.home).Status(ctx)
	switch {
	case err == nil:
		e.running = &status
	case !errors.Is(err, control.ErrNotRunning):
		e.silent = err
	}
}

// checkServer examines a running server, or checks that one could listen.
func (e *examination) checkServer(ctx context.Context) {
	if e.silent != nil {
		if timedOut(e.silent) {
			e.addError("server", "its control socket", e.silent, "restart the server")
			return
		}
		e.add("server", failed, "its control socket does not respond: "+reason(e.silent), "run doctor as the server's user, or restart the server")
		return
	}
	if status := e.running; status != nil {
		e.add("server", ok, fmt.Sprintf("version %s is running at %s (process %d)", status.Version, status.URL, status.PID), "")
		if status.Version != e.o.Version {
			e.add("server", warning, fmt.Sprintf("it runs version %s, but this command is version %s", status.Version, e.o.Version), "restart the server")
		}
		e.checkHealth(ctx, apiclient.Client{Server: status.URL, HTTP: apiclient.Pinned(status.Certificate)})
		e.checkReadiness(ctx)
		e.checkBaseURL(ctx)
		e.checkKey(ctx, apiclient.Client{Server: status.URL, HTTP: apiclient.Pinned(status.Certificate)})
		return
	}
	if e.config == nil {
		return // the address is in the configuration
	}
	e.checkPort(ctx)
}

// checkPort checks that a server could listen.
func (e *examination) checkPort(ctx context.Context) {
	address := net.JoinHostPort(e.config.HTTP.Host, strconv.Itoa(e.config.HTTP.Port))
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		e.add("port", failed, address+": "+inUse(ctx, address, err), e.portRemedy(err))
		return
	}
	_ = listener.Close()
	e.add("server", ok, "not running; "+address+" is free", "")
}

// portRemedy returns what to do about an address on which the server cannot listen.
func (e *examination) portRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "stop the program that uses the port, or choose another one with http.port or --port"
	case errors.Is(err, syscall.EACCES):
		return "choose a port of 1024 or more with http.port or --port, or let the server use lower ones (setcap cap_net_bind_service=+ep on the executable, AmbientCapabilities in systemd)"
	}
	return "set http.host or --host to one of this machine's addresses, or to a name that resolves to one"
}

// inUse returns why the server cannot listen on an address, which may be that another Ropewalk server is using it.
func inUse(ctx context.Context, address string, err error) string {
	if o, ok := errors.AsType[*net.OpError](err); ok {
		err = o.Err
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err.Error()
	}
	var health struct {
		Status  string
		Bundles []any
	}
	if _, err := getJSON(ctx, httpClient(), "http://"+address+"/v1/health", &health); err == nil && health.Status == "ok" && health.Bundles != nil {
		return "a Ropewalk server with another home is using it"
	}
	return "another program is using it"
}

// clockTolerance is how far clocks may differ before tokens are rejected.
const clockTolerance = 30 * time.Second

// checkHealth asks the running server for its health.
func (e *examination) checkHealth(ctx context.Context, client apiclient.Client) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := client.Get(ctx, "/v1/health", nil, nil); err != nil {
		e.addError("health", "GET /v1/health", err, "check the server's log, and restart it")
		return
	}
	e.add("health", ok, "GET /v1/health returns 200 OK", "")
}

// checkBaseURL checks that the address in http.baseUrl leads to a Ropewalk server.
func (e *examination) checkBaseURL(ctx context.Context) {
	if e.config == nil || e.config.HTTP.BaseURL == "" {
		return
	}
	address := e.config.HTTP.BaseURL
	var health struct {
		Status  string
		Bundles []any
	}
	remedy := "set http.baseUrl to the address at which clients and browsers reach this server, or correct the proxy; logins and /mcp discovery use it. If only this machine cannot reach it, nothing is wrong"
	_, err := getJSON(ctx, httpClient(), address+"/v1/health", &health)
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		remedy = "make this machine and every client trust the certificate authority that signed the certificate (SSL_CERT_FILE can point to a file that contains it), or use a public one"
	}
	if status, ok := errors.AsType[*statusError](err); ok && status.code >= http.StatusInternalServerError {
		remedy = "a proxy responds there but cannot reach this server; see its log, and correct its configuration"
		if e.failed("readiness") {
			remedy = "make the server ready first, as described above; until then, proxies that check /readyz respond like this"
		}
	}
	switch {
	case err == nil && health.Status == "ok" && health.Bundles != nil:
		e.add("baseUrl", ok, address+" leads to a Ropewalk server", "")
		return
	case err == nil:
		err = errors.New("something else responds there")
	default:
		err = errors.New(reason(err))
	}
	e.add("baseUrl", warning, "http.baseUrl: "+address+": "+err.Error(), remedy)
}

// checkKey sends the running server the API key that commands take from the environment, unless that key is for the
// server in ROPEWALK_SERVER.
func (e *examination) checkKey(ctx context.Context, client apiclient.Client) {
	const variable = "ROPEWALK_API_KEY"
	client.Key = os.Getenv(variable)
	if client.Key == "" || os.Getenv("ROPEWALK_SERVER") != "" {
		return
	}
	var answer json.RawMessage
	err := client.Get(ctx, "/v1/workspace", nil, &answer)
	if refused, ok := errors.AsType[*apiclient.Error](err); ok && refused.Status == http.StatusUnauthorized {
		e.add("API key", failed, "the server does not accept the key from "+variable+"; it belongs to another server, has been revoked, or has expired",
			"set "+variable+" to a key of this server, which an admin creates with `ropewalk key create`, or unset it")
		return
	}
	if err == nil {
		e.add("API key", ok, "the server accepts the key from "+variable, "")
	}
}
