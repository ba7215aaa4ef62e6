package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func (e *examination) checkConfiguration(cmd *cobra.Command) {
	c, err := e.o.Load(cmd)
	if err != nil {
		if problems, several := errors.AsType[config.Problems](err); several {
			for _, p := range problems {
				e.add("configuration", failed, p.String(), configurationRemedy(p.String()))
			}
			return
		}
		e.add("configuration", failed, err.Error(), configurationRemedy(err.Error()))
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
			continue // checkModel reports it
		}
		e.add("configuration", warning, w, "change the setting, or leave it if you meant it")
	}
}

// configurationRemedy says what to do about a problem of the configuration.
func configurationRemedy(problem string) string {
	if strings.Contains(problem, "permission denied") {
		return "run doctor as the user of the server, or choose another home with --home or ROPEWALK_HOME"
	}
	return "correct the file; `ropewalk config schema` describes every setting"
}

// checkServer finds a running server, or makes sure that one could listen.
func (e *examination) checkServer(ctx context.Context) {
	status, err := control.Dial(e.config.Home).Status(ctx)
	if err == nil {
		e.running = &status
		e.add("server", ok, fmt.Sprintf("version %s is running at %s (process %d)", status.Version, status.URL, status.PID), "")
		if status.Version != e.o.Version {
			e.add("server", warning, fmt.Sprintf("it runs version %s, this is %s", status.Version, e.o.Version), "restart the server")
		}
		e.checkAnswer(ctx, status.URL)
		e.checkReadiness(ctx)
		return
	}
	if !errors.Is(err, control.ErrNotRunning) {
		e.add("server", failed, "its control socket does not answer: "+err.Error(), "run doctor as the user of the server, or restart the server")
		return
	}
	address := net.JoinHostPort(e.config.HTTP.Host, strconv.Itoa(e.config.HTTP.Port))
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", address)
	if err != nil {
		e.add("port", failed, address+": "+inUse(ctx, address, err), "end the program that uses the port, or choose another one with http.port or --port")
		return
	}
	_ = listener.Close()
	e.add("server", ok, "not running; "+address+" is free", "")
}

// inUse says why an address cannot be listened on, and whether it is another server of this kind that has it.
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
	if _, err := getJSON(ctx, "http://"+address+"/v1/health", &health); err == nil && health.Status == "ok" && health.Bundles != nil {
		return "a Ropewalk server with another home listens there"
	}
	return "another program listens there"
}

// clockTolerance is how far clocks may differ before tokens are refused.
const clockTolerance = 30 * time.Second

// checkAnswer asks the running server for its health.
func (e *examination) checkAnswer(ctx context.Context, url string) {
	res, err := get(ctx, url+"/v1/health")
	if err != nil {
		e.add("health", failed, err.Error(), "look into the server's log, and restart it")
		return
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		e.add("health", failed, "GET /v1/health answers "+res.Status, "look into the server's log")
		return
	}
	e.add("health", ok, "GET /v1/health answers "+res.Status, "")
}

func get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 10 * time.Second}
	return client.Do(req)
}
