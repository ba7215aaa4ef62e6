package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/hashchain"
)

const (
	readBlock = 64 << 10  // bytes of one read
	readMost  = 16 << 20  // bytes of one page: a rare record of a large file takes several pages to find
	disorder  = time.Hour // how much earlier than an older record a record may be: clocks are set back
)

// Records implements Reader. It reads from the end of the file toward its beginning; the cursor is the
// place in the file where the page before ended. A page may have fewer records than the limit, or none,
// and still be followed by another.
func (f *File) Records(ctx context.Context, q core.AuditQuery) (page core.AuditPage, err error) {
	end := f.chain.Size()
	if q.Cursor != "" {
		if end, err = f.placeOf(q.Cursor, end); err != nil {
			return page, err
		}
	}
	lines := backward{from: f.chain, at: end}
	for lines.at > 0 {
		if len(page.Records) >= q.Limit || end-lines.at >= readMost {
			page.Next = strconv.FormatInt(lines.at, 10)
			return page, nil
		}
		if err := ctx.Err(); err != nil {
			return page, err
		}
		raw, err := lines.next()
		if err != nil {
			return page, fmt.Errorf("audit.file: %w", err)
		}
		record, err := recordOf(raw)
		if err != nil {
			return page, fmt.Errorf("audit.file: the line at byte %d: %w", lines.at, err)
		}
		if record.Time.Before(q.From.Add(-disorder)) {
			return page, nil
		}
		if q.Selects(&record) {
			page.Records = append(page.Records, record)
		}
	}
	return page, nil
}

// placeOf is the place that a cursor names, which is the end of a line before end.
func (f *File) placeOf(cursor string, end int64) (int64, error) {
	at, err := strconv.ParseInt(cursor, 10, 64)
	last := make([]byte, 1)
	if err == nil && at > 0 && at <= end {
		if _, err := f.chain.ReadAt(last, at-1); err != nil {
			return 0, fmt.Errorf("audit.file: %w", err)
		}
	}
	if last[0] != '\n' {
		return 0, core.Errorf(core.CodeBadRequest, "cursor must be the nextCursor of an answer of this server")
	}
	return at, nil
}

// recordOf returns the record of a line without the arguments of its call.
func recordOf(raw []byte) (r core.AuditRecord, err error) {
	record, err := hashchain.Record(raw)
	if err != nil {
		return r, err
	}
	err = json.Unmarshal(record, &r)
	r.Arguments = nil
	return r, err
}

// backward reads lines from the end of a file to its beginning.
type backward struct {
	from io.ReaderAt
	at   int64  // where the line that next returned begins: the end of the one before
	held []byte // what was read before at
}

// next returns the line that ends at b.at, without its end. The line is valid until the next call.
func (b *backward) next() ([]byte, error) {
	for {
		// held ends with the end of the line that is wanted.
		if len(b.held) > 0 {
			begins := bytes.LastIndexByte(b.held[:len(b.held)-1], '\n') + 1
			if begins > 0 || int64(len(b.held)) == b.at {
				line := b.held[begins : len(b.held)-1]
				b.at -= int64(len(b.held) - begins)
				b.held = b.held[:begins]
				return line, nil
			}
		}
		if len(b.held) > hashchain.MaxLine {
			return nil, errors.New("a line is longer than 20 MiB")
		}
		before := b.at - int64(len(b.held))
		block := make([]byte, min(max(readBlock, int64(len(b.held))), before)) // doubles for a long line
		if _, err := b.from.ReadAt(block, before-int64(len(block))); err != nil {
			return nil, err
		}
		b.held = slices.Concat(block, b.held)
	}
}
