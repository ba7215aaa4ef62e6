package audit

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/hashchain"
)

// File is a sink that appends to a file, one line for each record, chained by hash.
type File struct{ chain *hashchain.File }

// OpenFile opens or creates an audit file and continues its chain. With durable set, a record is on the
// disk before Write returns. A last line that a crash cut short is removed.
func OpenFile(path string, durable bool) (*File, error) {
	chain, err := hashchain.Open(path, durable, nil)
	if err != nil {
		return nil, fmt.Errorf("audit.file: %w", err)
	}
	return &File{chain: chain}, nil
}

// Write implements Sink.
func (f *File) Write(_ context.Context, r core.AuditRecord) error {
	record, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return f.chain.Append(func() ([][]byte, error) { return [][]byte{record}, nil })
}

// Close implements Sink.
func (f *File) Close(context.Context) error { return f.chain.Close() }
