package login

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/cli/browser"
)

// hasBrowser reports whether a browser opened here would be visible to the person.
func hasBrowser() bool {
	switch {
	case os.Getenv("BROWSER") != "":
		return true
	case os.Getenv("SSH_CONNECTION") != "":
		return false
	case runtime.GOOS != "linux":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// open opens an address in the browser, which may be the program named by BROWSER. If none opens, the address
// is still on the screen.
func open(ctx context.Context, address string) {
	if program := strings.Fields(os.Getenv("BROWSER")); len(program) > 0 {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], append(program[1:], address)...) //nolint:gosec // the person's own setting
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }()
		}
		return
	}
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	_ = browser.OpenURL(address)
}

// listener waits for the browser to return to this computer (RFC 8252 section 7.3).
type listener struct {
	address string // nobody else knows its path
	server  *http.Server
	answers chan answer
}

// answer is what the browser returned. done receives the result.
type answer struct {
	code, failure string
	done          chan error
}

var errRefused = errors.New("the login was refused in the browser")

func listen(ctx context.Context) (*listener, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	path := "/" + rand.Text()
	l := &listener{address: "http://" + socket.Addr().String() + path, answers: make(chan answer)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		a := answer{r.URL.Query().Get("code"), r.URL.Query().Get("error"), make(chan error, 1)}
		select {
		case l.answers <- a:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		text := "You are logged in. You can close this page and go back to the command line."
		if err := <-a.done; err != nil {
			text = "You are not logged in. See the command line for the reason."
		}
		_, _ = io.WriteString(w, "<!doctype html><html lang=\"en\"><title>ropewalk login</title><p>"+text+"</p></html>")
	})
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = l.server.Serve(socket) }() // it returns when close is called; its error contains no other information
	return l, nil
}

// close stops the listener once the browser has received its page.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.server.Shutdown(ctx)
}

// wait waits for the browser's answer, passes its code to use, and returns the result, which the browser also shows.
func (l *listener) wait(ctx context.Context, use func(code string) error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a := <-l.answers:
		err := errRefused
		if a.failure == "" {
			err = use(a.code)
		}
		a.done <- err
		return err
	}
}
