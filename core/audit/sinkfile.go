package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/hashchain"
)

// ActionDeleteFile is the action of the record that is written before a closed file is deleted. Its target is the name
// of the file and the hash of its last line. The record lets Verify distinguish a file that was deleted at the end of
// its retention from one that someone removed.
const ActionDeleteFile = "audit.delete_file"

// FileOptions configure a File.
type FileOptions struct {
	Durable  bool          // a record is on disk before Write returns
	MaxBytes int64         // a file of this size is closed and the next one started; 0 means no limit
	MaxAge   time.Duration // a file whose first record is this old is closed too; 0 means no limit
	Keep     time.Duration // a closed file is deleted when its last record is this old; 0 keeps all files

	// Problem is called when a file could not be closed or deleted; records are still written. May be nil.
	Problem func(error)
}

// File is a sink that appends to a file, one line per record, chained by hash. The file is closed when it reaches
// a certain size or age, and the chain continues in the next one.
type File struct{ chain *hashchain.Set }

// OpenFile opens or creates an audit file and continues its chain. It removes the last line if a crash cut it
// off.
func OpenFile(path string, o FileOptions) (*File, error) {
	if o.Problem == nil {
		o.Problem = func(error) {}
	}
	chain, err := hashchain.OpenSet(path, hashchain.SetOptions{
		Durable: o.Durable, MaxBytes: o.MaxBytes, MaxAge: o.MaxAge, Keep: o.Keep,
		Time: timeOf, Deletion: deletion, Problem: o.Problem,
	})
	if err != nil {
		return nil, fmt.Errorf("audit.file: %w", err)
	}
	return &File{chain: chain}, nil
}

// Write implements Sink. It leaves out arguments that do not fit on a line: encoding makes some characters six times as
// long, and a line that is too long could not be read again.
func (f *File) Write(_ context.Context, r core.AuditRecord) error {
	size := len(r.Arguments)
	r.Arguments = limited(r.Arguments, hashchain.MaxRecord)
	record, err := json.Marshal(r)
	if err == nil && len(record) > hashchain.MaxRecord {
		r.Arguments = leftOut(size)
		record, err = json.Marshal(r)
	}
	if err != nil {
		return err
	}
	return f.chain.Append(record)
}

// Close implements Sink.
func (f *File) Close(context.Context) error { return f.chain.Close() }

// Verify checks the chain of an audit file and its closed files, the oldest first. The error names the first
// invalid file and line. Files that were deleted at the end of their retention may be missing at the beginning.
func Verify(path string) (hashchain.Summary, error) { return hashchain.VerifySet(path, deletedHash) }

func timeOf(record []byte) (time.Time, error) {
	var r core.AuditRecord
	err := json.Unmarshal(record, &r)
	return r.Time, err
}

// deletion returns the record about the deletion of a closed file.
func deletion(name, hash string) ([]byte, error) {
	return json.Marshal(core.AuditRecord{Time: time.Now().UTC(), Action: ActionDeleteFile, Target: name + " " + hash, Outcome: "ok"})
}

// deletedHash returns the hash of the last line of the file that a record reports as deleted.
func deletedHash(record []byte) (hash string, ok bool) {
	var r core.AuditRecord
	if json.Unmarshal(record, &r) != nil || r.Action != ActionDeleteFile {
		return "", false
	}
	return r.Target[strings.LastIndexByte(r.Target, ' ')+1:], true // a hash has no spaces
}
