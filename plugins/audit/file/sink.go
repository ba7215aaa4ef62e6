package file

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"

	"github.com/ropewalk/ropewalk/internal/hashchain"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

// Sink is an audit.Reader that appends to a file.
type Sink struct {
	chain *hashchain.File

	mu   sync.Mutex
	last map[string]uint64 // the highest sequence number of each stream in the file
}

var _ audit.Reader = (*Sink)(nil)

// New returns a sink that must be configured before use.
func New() *Sink { return &Sink{last: map[string]uint64{}} }

// Name implements plugins.Named.
func (*Sink) Name() string { return "file" }

// NewSettings implements plugins.SettingsHolder.
func (*Sink) NewSettings() any { return &Settings{} }

// Configure implements plugins.Configurer.
func (s *Sink) Configure(_ context.Context, c plugins.Config) error {
	var settings Settings
	if err := c.Decode(&settings); err != nil {
		return err
	}
	problems := &plugins.ConfigError{}
	if settings.File == "" {
		if c.DataDir == "" {
			problems.Add("file", "is missing, and there is no data directory to create it in")
			return problems
		}
		settings.File = filepath.Join(c.DataDir, "audit.log")
	}
	chain, err := hashchain.Open(settings.File, true, s.note)
	if err != nil {
		problems.Add("file", "cannot be used: %v", err)
		return problems
	}
	s.chain = chain
	return nil
}

// Close implements io.Closer.
func (s *Sink) Close() error {
	if s.chain == nil {
		return nil
	}
	return s.chain.Close()
}

// note stores the sequence number of a record in the file.
func (s *Sink) note(record []byte) error {
	var e struct {
		Stream   string `json:"stream"`
		Sequence uint64 `json:"sequence"`
	}
	if err := json.Unmarshal(record, &e); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[e.Stream] = max(s.last[e.Stream], e.Sequence)
	return nil
}

// Write implements audit.Sink.
func (s *Sink) Write(ctx context.Context, stream string, records []audit.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := audit.CheckWrite(stream, records); err != nil {
		return err
	}
	var written uint64
	err := s.chain.Append(func() (lines [][]byte, err error) {
		s.mu.Lock()
		last := s.last[stream]
		s.mu.Unlock()
		for _, r := range records {
			if r.Sequence <= last {
				continue
			}
			line, err := json.Marshal(audit.Entry{Stream: stream, Record: r})
			if err != nil {
				return nil, err
			}
			lines, written = append(lines, line), r.Sequence
		}
		return lines, nil
	})
	if err != nil {
		return plugins.Unavailable(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[stream] = max(s.last[stream], written)
	return nil
}

// Read implements audit.Reader. It reads the file from its start.
func (s *Sink) Read(ctx context.Context, stream string, after uint64, limit int) (found []audit.Record, err error) {
	name, err := json.Marshal(stream) // as Write encodes it
	if err != nil {
		return nil, err
	}
	err = s.chain.Each(name, func(record []byte) (bool, error) {
		var e audit.Entry
		if err := json.Unmarshal(record, &e); err != nil {
			return false, err
		}
		if e.Stream == stream && e.Sequence > after {
			found = append(found, e.Record)
		}
		return len(found) < limit, ctx.Err()
	})
	return found, plugins.Unavailable(err)
}
