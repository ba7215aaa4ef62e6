package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/hashchain"
)

const (
	readBlock = 64 << 10  // bytes per read
	maxRead   = 16 << 20  // bytes per page, so finding a rare record in a large file takes several pages
	readAfter = 1 << 20   // bytes read beyond a full page, to find the arguments of its last calls
	maxShown  = 4 << 10   // bytes of a call's arguments
	disorder  = time.Hour // how much earlier than its predecessor a record may be, because clocks are sometimes set back
)

// place is a position in the files: the end of a line.
type place struct {
	number int // the file's number
	at     int64
}

// String returns the place as a cursor.
func (p place) String() string { return fmt.Sprintf("%d-%d", p.number, p.at) }

// Records implements Reader. It reads from the end of the current file back to the beginning of the oldest one.
// The cursor is the place where the previous page ended. A page may have fewer records than the limit, or none,
// and still be followed by another.
func (f *File) Records(ctx context.Context, q core.AuditQuery) (page core.AuditPage, err error) {
	number, size := f.chain.End()
	from := place{number, size}
	if q.Cursor != "" {
		if from, err = placeOf(q.Cursor, from); err != nil {
			return page, err
		}
	}
	read := pageReader{query: q, left: maxRead}
	for {
		next, err := f.readFile(ctx, &read, from)
		switch {
		case err != nil:
			return page, err
		case next.at > 0:
			return core.AuditPage{Records: read.records, Next: next.String()}, nil
		case read.done || from.number == 1:
			return core.AuditPage{Records: read.records}, nil
		}
		from = place{number: from.number - 1, at: -1}
	}
}

// placeOf parses a cursor. The place must not be after end. Whether a line ends there is checked when the file is
// read.
func placeOf(cursor string, end place) (p place, err error) {
	number, at, _ := strings.Cut(cursor, "-")
	p.number, err = strconv.Atoi(number)
	if err == nil {
		p.at, err = strconv.ParseInt(at, 10, 64)
	}
	if err != nil || p.String() != cursor || p.number < 1 || p.at < 1 || p.number > end.number || p.number == end.number && p.at > end.at {
		return p, invalidCursor()
	}
	return p, nil
}

func invalidCursor() error {
	return core.Errorf(core.CodeBadRequest, "cursor must be a nextCursor that this server returned")
}

// readFile reads one file backwards from a place; -1 means its end. It returns the place where the page ends; at is 0
// if the page continues in the previous file. If the file has been deleted at the end of its retention, the trail ends.
func (f *File) readFile(ctx context.Context, page *pageReader, from place) (next place, err error) {
	file, err := f.chain.OpenNumber(from.number)
	if errors.Is(err, os.ErrNotExist) {
		page.done = true
		return place{}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("audit.file: %w", err)
	}
	defer func() { _ = file.Close() }()
	if from.at < 0 {
		info, err := file.Stat()
		if err != nil {
			return place{}, fmt.Errorf("audit.file: %w", err)
		}
		from.at = info.Size()
	}
	last := make([]byte, 1)
	if from.at > 0 {
		if _, err := file.ReadAt(last, from.at-1); err != nil && !errors.Is(err, io.EOF) {
			return place{}, fmt.Errorf("audit.file: %w", err)
		}
		if last[0] != '\n' {
			return place{}, invalidCursor()
		}
	}
	at, err := page.read(ctx, file, from.at)
	if err != nil {
		return place{}, fmt.Errorf("audit.file: %w", err)
	}
	return place{from.number, at}, nil
}

// pageReader collects the records of a page.
type pageReader struct {
	query   core.AuditQuery
	records []core.AuditRecord
	left    int64 // bytes that may still be read
	done    bool  // no older record can match

	ended map[string]int // the index in records of the end of each call whose start has not been read yet
}

// read reads lines backwards from a place until the page is full or done, and the arguments of its calls are known. It
// returns where the page ended: 0 at the beginning of the file.
func (p *pageReader) read(ctx context.Context, file io.ReaderAt, end int64) (at int64, err error) {
	lines := backward{from: file, at: end}
	defer func() { p.left -= end - lines.at }()
	for lines.at > 0 {
		switch full := len(p.records) >= p.query.Limit; {
		case full && at == 0:
			at = lines.at
		case !full && end-lines.at >= p.left:
			return lines.at, nil
		}
		if at > 0 && (len(p.ended) == 0 || at-lines.at >= readAfter) {
			return at, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		raw, err := lines.next()
		if err != nil {
			return 0, err
		}
		record, err := shownOf(raw)
		if err != nil {
			return 0, fmt.Errorf("the line at byte %d: %w", lines.at, err)
		}
		p.addArguments(record)
		switch {
		case at > 0: // the record belongs to the next page
		case record.Time.Before(p.query.From.Add(-disorder)):
			p.done = true
			return 0, nil
		case p.query.Selects(&record):
			p.add(record)
		}
	}
	return at, nil
}

func (p *pageReader) add(r core.AuditRecord) {
	if r.CallID != "" && strings.HasSuffix(r.Action, ".ended") {
		if p.ended == nil {
			p.ended = map[string]int{}
		}
		p.ended[r.CallID] = len(p.records)
	}
	p.records = append(p.records, r)
}

// addArguments adds the arguments in the first record of a call to the record of its end, which was read before.
func (p *pageReader) addArguments(r core.AuditRecord) {
	i, ok := p.ended[r.CallID]
	if !ok {
		return
	}
	p.records[i].Arguments = r.Arguments
	delete(p.ended, r.CallID)
}

// shownOf returns the record on a line, with its arguments if they are short.
func shownOf(raw []byte) (r core.AuditRecord, err error) {
	record, err := hashchain.Record(raw)
	if err != nil {
		return r, err
	}
	err = json.Unmarshal(record, &r)
	r.Arguments = limited(r.Arguments, maxShown)
	return r, err
}

// backward reads the lines of a file from the last to the first.
type backward struct {
	from io.ReaderAt
	at   int64  // start of the line that next returned, and so the end of the one before
	held []byte // bytes that were read but not returned yet; they end at at
}

// next returns the line that ends at b.at, without its line break. The line is valid until the next call.
func (b *backward) next() ([]byte, error) {
	for {
		// held ends with the line break of the wanted line.
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
			return nil, fmt.Errorf("a line is longer than %d MiB", hashchain.MaxLine>>20)
		}
		before := b.at - int64(len(b.held))
		block := make([]byte, min(max(readBlock, int64(len(b.held))), before)) // doubles for a long line
		if _, err := b.from.ReadAt(block, before-int64(len(block))); err != nil {
			return nil, err
		}
		b.held = slices.Concat(block, b.held)
	}
}
