package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/listener"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// Commands are the requests that an operator can make to a running server.
type Commands interface {
	// Reload reads the configuration again and applies it. The error says why nothing changed.
	Reload(ctx context.Context) (Reloaded, error)
	// Plan reports what Reload would change, and whom the identity providers would then recognize. It does not
	// change anything.
	Plan(ctx context.Context) (Plan, error)
	// Plugins returns the state of the plugins.
	Plugins() []pluginhost.Status
	// Attach directs a plugin's calls to a process that someone else started, until ctx ends or the process exits. It
	// returns nil if ctx ended. attached is called once the process responds.
	Attach(ctx context.Context, a Attach, attached func(Attached)) error
	// Apps returns the apps of all workspaces.
	Apps() []App
	// Status describes the server.
	Status() Status
	// OwnerToken returns a bearer token of the API for the owner of the server. Access to the socket is the
	// proof of ownership.
	OwnerToken() core.Secret
	// Readiness runs the checks of /readyz.
	Readiness() []Check
	// LogLevels changes levels by component and returns those in force. nil changes nothing.
	LogLevels(change map[string]string) (map[string]string, error)
}

// Status describes a running server.
type Status struct {
	URL     string `json:"url"`               // where the HTTP API listens
	BaseURL string `json:"baseUrl,omitempty"` // the address at which others reach it (http.baseUrl); may be ""
	// Certificate is the certificate that the server presents at URL, in DER. Whoever may use the control socket needs
	// no other proof of the server's identity. Empty without TLS.
	Certificate []byte `json:"certificate,omitempty"`
	Workspace   string `json:"workspace"`
	Version     string `json:"version"`
	PID         int    `json:"pid"`
	Dev         bool   `json:"dev"` // no authentication is configured
	// SearchPath is the PATH of the server, where it looks for the programs of apps.
	SearchPath string `json:"searchPath"`
	// Config is the file that the server read; may be "".
	Config string `json:"config,omitempty"`
	// Encrypts reports whether the secrets of apps are stored encrypted. The key may be in a variable that only the
	// server has.
	Encrypts bool `json:"encrypts,omitempty"`

	Sandbox Sandbox `json:"sandbox"`
}

// Sandbox describes what the running server can use on this machine to confine apps. It may differ from what other
// processes can use: a systemd unit or a container takes privileges away.
type Sandbox struct {
	Level     string   `json:"level"`
	OwnUser   bool     `json:"ownUser"`            // each app can have its own user id
	Reason    string   `json:"reason,omitempty"`   // why the level is not the highest
	Chroot    bool     `json:"chroot,omitempty"`   // the reason is that the server runs in a chroot
	Cgroup    []string `json:"cgroup"`             // the limits that the kernel enforces
	NoCgroups string   `json:"noCgroup,omitempty"` // why there are none
}

// Check is the result of one check of /readyz.
type Check struct {
	Name string `json:"name"`
	Err  string `json:"error,omitempty"` // "" if it passed

	Advisory bool `json:"advisory,omitempty"` // a failure does not make the server unready
}

// Reloaded describes what a reload changed.
type Reloaded struct {
	Changed []string `json:"changed"` // configuration sections now in force
	Restart []string `json:"restart"` // sections that have changed but take effect only after a restart
}

// Plan describes what a reload would change.
type Plan struct {
	Reloaded
	People *core.Forecast `json:"people,omitempty"` // nil if the identity providers do not change
}

// App is the state of one app.
type App struct {
	Workspace string `json:"workspace"`
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	Status    string `json:"status"`
	LastErr   string `json:"lastError,omitempty"` // why it is not running
}

type ownerToken struct {
	Token string `json:"token"`
}

// failure is the body of a response that is not 200.
type failure struct {
	Message string `json:"message"`
}

// Server answers commands on the socket.
type Server struct {
	http    *http.Server
	done    chan struct{} // closed when the listener has stopped
	closing chan struct{} // closed when the server is about to stop
}

// Listen opens the socket of a home. Only one server may run for a home, so a socket left by a killed server is
// replaced.
func Listen(ctx context.Context, home string, c Commands) (*Server, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	p, err := openPlace(home)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := p.listen(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), p.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) {
		done, err := c.Reload(r.Context())
		answer(w, done, err)
	})
	mux.HandleFunc("POST /plan", func(w http.ResponseWriter, r *http.Request) {
		plan, err := c.Plan(r.Context())
		answer(w, plan, err)
	})
	mux.HandleFunc("GET /plugins", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Plugins(), nil) })
	mux.HandleFunc("GET /apps", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Apps(), nil) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Status(), nil) })
	mux.HandleFunc("POST /owner", func(w http.ResponseWriter, _ *http.Request) { answer(w, ownerToken{c.OwnerToken().Reveal()}, nil) })
	mux.HandleFunc("GET /readiness", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Readiness(), nil) })
	mux.HandleFunc("PATCH /log/levels", func(w http.ResponseWriter, r *http.Request) { setLevels(c, w, r) })
	mux.HandleFunc("GET /profiles/{name}", profile)
	s := &Server{
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		done: make(chan struct{}), closing: make(chan struct{}),
	}
	s.http.RegisterOnShutdown(sync.OnceFunc(func() { close(s.closing) }))
	mux.HandleFunc("POST /plugins/attach", func(w http.ResponseWriter, r *http.Request) { s.attach(c, w, r) })
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener.New(l, listener.Options{})) // it returns after Close, and reports only that
		_ = p.Close()                                         // after the socket, whose path may go through it
	}()
	return s, nil
}

// Close waits for the commands in progress and removes the socket.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	return err
}

func answer(w http.ResponseWriter, body any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		body = failure{Message: err.Error()}
	}
	_ = json.NewEncoder(w).Encode(body) // the operator may have disconnected
}

func setLevels(c Commands, w http.ResponseWriter, r *http.Request) {
	var change map[string]string
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		answer(w, nil, err)
		return
	}
	all, err := c.LogLevels(change)
	answer(w, all, err)
}
