package rival

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
)

// Relay passes raw JSON-RPC between HTTP and the standard input and output of one bundle. It has no sessions,
// no authentication and no filters, and checks nothing. It only replaces ids, so that calls from many clients
// can share the bundle. It shows the minimum cost of any gateway of this kind. It writes its URL to out.
func Relay(ctx context.Context, bundle []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, bundle[0], bundle[1:]...) //nolint:gosec // the benchmark's own executable
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	responses, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	r := &relay{in: in, waiting: map[int64]chan []byte{}}
	go r.read(responses)
	if r.hello, err = r.greet(); err != nil {
		return fmt.Errorf("greet the bundle: %w", err)
	}
	return serve(ctx, "/mcp", r, out)
}

type relay struct {
	hello []byte // the bundle's result for initialize

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan []byte

	writing sync.Mutex // separate from mu: the bundle may stop reading until its responses are read
	in      io.Writer
	line    []byte // reused
}

// greet initializes the bundle. That is allowed only once, so all clients get the same result.
func (r *relay) greet() ([]byte, error) {
	response, err := r.ask([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench-relay","version":"1"}}}`))
	if err != nil {
		return nil, err
	}
	var m struct{ Result json.RawMessage }
	if err := json.Unmarshal(response, &m); err != nil {
		return nil, err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	_, err = r.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return m.Result, err
}

// idOf finds the id of a message and its position.
func idOf(message []byte) (from, to int, ok bool) {
	from = bytes.Index(message, []byte(`"id":`))
	if from < 0 {
		return 0, 0, false
	}
	from += len(`"id":`)
	n := bytes.IndexAny(message[from:], ",}")
	return from, from + n, n > 0
}

// ask sends a message with an id of the relay and waits for the response with that id.
func (r *relay) ask(message []byte) ([]byte, error) {
	from, to, ok := idOf(message)
	if !ok {
		return nil, fmt.Errorf("a message without an id: %.100s", message)
	}
	response := make(chan []byte, 1)
	r.mu.Lock()
	r.last++
	id := r.last
	r.waiting[id] = response
	r.mu.Unlock()
	if err := r.send(message[:from], id, message[to:]); err != nil {
		return nil, err
	}
	line, open := <-response
	if !open {
		return nil, io.ErrUnexpectedEOF
	}
	return line, nil
}

// send writes a message with its id replaced.
func (r *relay) send(before []byte, id int64, after []byte) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.line = strconv.AppendInt(append(r.line[:0], before...), id, 10)
	r.line = append(append(r.line, after...), '\n')
	_, err := r.in.Write(r.line)
	return err
}

// read passes the bundle's responses to the waiting requests.
func (r *relay) read(out io.Reader) {
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		from, to, ok := idOf(line)
		n, err := strconv.ParseInt(string(line[from:to]), 10, 64)
		if !ok || err != nil {
			continue
		}
		r.mu.Lock()
		response := r.waiting[n]
		delete(r.waiting, n)
		r.mu.Unlock()
		if response != nil {
			response <- line
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, response := range r.waiting {
		delete(r.waiting, n)
		close(response)
	}
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from, to, ok := idOf(body)
	if !ok {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var response []byte
	if bytes.Contains(body[:min(len(body), 80)], []byte(`"initialize"`)) {
		response = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, body[from:to], r.hello)
	} else {
		line, err := r.ask(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		f, t, _ := idOf(line)
		response = append(append(append(make([]byte, 0, len(line)+16), line[:f]...), body[from:to]...), bytes.TrimSuffix(line[t:], []byte{'\n'})...)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(response)))
	_, _ = w.Write(response)
}
