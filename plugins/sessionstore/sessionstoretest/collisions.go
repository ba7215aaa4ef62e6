package sessionstoretest

import (
	"context"
	"crypto/md5"  //nolint:gosec // not for security: a store may key by it
	"crypto/sha1" //nolint:gosec // not for security: a store may key by it
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"hash/fnv"
	"strconv"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// hashes are what a store might mistake for an id: 32 bits of it or of a digest.
func hashes() map[string]func(string) uint32 {
	first := func(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
	return map[string]func(string) uint32{
		"CRC-32":   func(id string) uint32 { return crc32.ChecksumIEEE([]byte(id)) },
		"CRC-32C":  func(id string) uint32 { return crc32.Checksum([]byte(id), crc32.MakeTable(crc32.Castagnoli)) },
		"Adler-32": func(id string) uint32 { return adler32.Checksum([]byte(id)) },
		"FNV-1":    func(id string) uint32 { h := fnv.New32(); _, _ = h.Write([]byte(id)); return h.Sum32() },
		"FNV-1a":   func(id string) uint32 { h := fnv.New32a(); _, _ = h.Write([]byte(id)); return h.Sum32() },
		"hashCode": func(id string) (h uint32) {
			for _, c := range []byte(id) {
				h = 31*h + uint32(c)
			}
			return h
		},
		"djb2": func(id string) (h uint32) {
			h = 5381
			for _, c := range []byte(id) {
				h = 33*h + uint32(c)
			}
			return h
		},
		"MD5":       func(id string) uint32 { d := md5.Sum([]byte(id)); return first(d[:]) },  //nolint:gosec // see above
		"SHA-1":     func(id string) uint32 { d := sha1.Sum([]byte(id)); return first(d[:]) }, //nolint:gosec // see above
		"SHA-256":   func(id string) uint32 { d := sha256.Sum256([]byte(id)); return first(d[:]) },
		"its start": func(id string) uint32 { return first([]byte(id)) },
		"its end":   func(id string) uint32 { return first([]byte(id)[len(id)-4:]) },
	}
}

// collidingIDs finds, for each hash, ids that collide, and checks that a store tells them apart.
func collidingIDs(ctx context.Context, s sessionstore.Store) error {
	for name, hash := range hashes() {
		pair := collide(hash)
		if err := areDistinct(ctx, s, pair[:]...); err != nil {
			return kit.Failf("ids with the same 32 bits of %s: %w", name, err)
		}
	}
	return nil
}

// collide returns two ids with the same hash. It tries ids until it finds them: about 80,000 for a
// hash of 32 bits.
func collide(hash func(string) uint32) [2]string {
	stem := newID()
	seen := map[uint32]int{}
	id := func(i int) string { // a different start and end for each, so that those collide by birthday too
		mixed := uint64(i+1) * 0x9e3779b97f4a7c15 // splitmix64
		mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
		mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
		return strconv.FormatUint(mixed>>32, 36) + stem + strconv.FormatUint(mixed&0xffffffff, 36)
	}
	for i := 0; ; i++ {
		h := hash(id(i))
		if other, ok := seen[h]; ok {
			return [2]string{id(other), id(i)}
		}
		seen[h] = i
	}
}

// manyIDs puts as many sessions as it takes for a hash of 16 bits to collide, whichever it is, and pairs
// with the same 24 bits of the hashes above. More sessions would take a store too long that waits for the
// disk at each Put.
func manyIDs(ctx context.Context, s sessionstore.Store) error {
	const sessions, callers = 2_000, 16
	var ids []string
	for _, hash := range hashes() {
		pair := collide(func(id string) uint32 { return hash(id) >> 8 })
		ids = append(ids, pair[:]...)
	}
	for stem := newID(); len(ids) < sessions; {
		ids = append(ids, fmt.Sprintf("%s-%d", stem, len(ids)))
	}
	err := together(callers, func(part int) error {
		for i := part; i < sessions; i += callers {
			rec := session(ids[i])
			rec.Subject = ids[i]
			if err := putAs(ctx, s, rec, long); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return together(callers, func(part int) error {
		for i := part; i < sessions; i += callers {
			got, err := s.Get(ctx, ids[i])
			if err != nil {
				return kit.Failf("of %d sessions the one with the id %q is not found: %w", sessions, ids[i], err)
			}
			if got.Subject != ids[i] {
				return kit.Failf("of %d sessions the one with the id %q has the record of %q", sessions, ids[i], got.Subject)
			}
		}
		return nil
	})
}
