package audit

import (
	"fmt"

	"github.com/ropewalk/ropewalk/plugins"
)

// CheckWrite returns plugins.ErrInvalid if Write must reject its arguments, or nil. Serve calls it before Write; a sink
// that is also used directly must call it itself.
func CheckWrite(stream string, records []Record) error {
	if stream == "" {
		return fmt.Errorf("%w: a batch needs a stream", plugins.ErrInvalid)
	}
	last := uint64(0)
	for i, r := range records {
		if r.Sequence <= last {
			return fmt.Errorf("%w: the sequence of record %d must be higher than %d, not %d", plugins.ErrInvalid, i, last, r.Sequence)
		}
		last = r.Sequence
	}
	return nil
}

// CheckRead returns plugins.ErrInvalid if Read must reject its arguments, or nil. Serve calls it before Read.
func CheckRead(limit int) error {
	if limit < 1 || limit > MaxRecords {
		return fmt.Errorf("%w: the limit must be 1 to %d, not %d", plugins.ErrInvalid, MaxRecords, limit)
	}
	return nil
}
