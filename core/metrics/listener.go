package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
)

// contentType is the media type of the text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Listener serves GET /metrics without authentication on a separate address.
type Listener struct {
	server *http.Server
	addr   net.Addr
}

// Listen serves the metrics on l until Close.
func (m *Metrics) Listen(l net.Listener, log hclog.Logger) *Listener {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", m.serve)
	s := &Listener{addr: l.Addr(), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}}
	go func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the metrics listener failed", "error", err)
		}
	}()
	return s
}

// Addr returns the address that the listener listens on.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close stops the listener. Requests in progress may finish until ctx ends.
func (l *Listener) Close(ctx context.Context) error { return l.server.Shutdown(ctx) }

func (m *Metrics) serve(w http.ResponseWriter, r *http.Request) {
	text, err := m.Text()
	if err != nil {
		http.Error(w, "the metrics could not be collected", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // an error means that the client disconnected
	}
}
