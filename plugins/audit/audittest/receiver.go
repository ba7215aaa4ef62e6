package audittest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/audit"
)

// Receiver accepts the records that a sink forwards by HTTP, and keeps each once. A request contains records in
// the JSON format of audit.Entry, as a list or one after another.
type Receiver struct {
	mu      sync.Mutex
	streams map[string][]audit.Record
	refuses int // the status of every response; 0 accepts
}

// refuse makes the receiver respond with a status, except at "/accepted", where a redirect leads.
func (r *Receiver) refuse(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = status
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	status := r.refuses
	r.mu.Unlock()
	if status != 0 && req.URL.Path != "/accepted" {
		w.Header().Set("Location", "/accepted")
		http.Error(w, "not now", status)
		return
	}
	var all []audit.Entry
	for d := json.NewDecoder(req.Body); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		several := make([]audit.Entry, 1)
		if err == nil && raw[0] == '[' {
			err = json.Unmarshal(raw, &several)
		} else if err == nil {
			err = json.Unmarshal(raw, &several[0])
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all = append(all, several...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams == nil {
		r.streams = map[string][]audit.Record{}
	}
	for _, e := range all {
		if kept := r.streams[e.Stream]; len(kept) == 0 || kept[len(kept)-1].Sequence < e.Sequence {
			r.streams[e.Stream] = append(kept, e.Record)
		}
	}
}

// records returns the received records, like the Read method of audit.Reader.
func (r *Receiver) records(_ context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.streams[stream]
	from, _ := slices.BinarySearchFunc(kept, after, func(have audit.Record, after uint64) int {
		if have.Sequence <= after {
			return -1
		}
		return 1
	})
	return slices.Clone(kept[from:min(len(kept), from+limit)]), nil
}
