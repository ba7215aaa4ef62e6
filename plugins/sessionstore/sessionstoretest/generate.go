package sessionstoretest

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"hash/fnv"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// pick chooses a number below n. 0 is the plainest choice.
type pick func(n int) int

func one[T any](p pick, of ...T) T { return of[p(len(of))] }

const maxText, maxState = 1024, 64 << 10 // bytes

// text returns a string of at most limit bytes.
func text(p pick, limit int) string {
	all := kit.Texts()
	part := all[p(len(all))]
	switch p(8) {
	case 0, 6, 7:
		return part
	case 1:
		return ""
	case 2:
		return part + all[p(len(all))]
	case 3:
		return fitted(strings.Repeat(part, limit/len(part)+1), one(p, 127, 128, 254, 255, 256, 257, 511, 512, 1000, limit-1, limit))
	case 4:
		return fitted(strings.Repeat(part, limit/len(part)+1), p(limit+1))
	}
	return fitted(strings.Repeat("x", limit), one(p, limit, 1<<12, 1<<14, 1<<15, 1<<16-1))
}

// fitted returns the longest prefix of text with at most n bytes that ends at a character boundary.
func fitted(text string, n int) string {
	text = text[:min(len(text), n)]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}

// moment returns a time that the contract allows, in whole milliseconds.
func moment(p pick) time.Time {
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	switch p(4) {
	case 0:
		return base.Add(time.Duration(p(2000)) * time.Millisecond)
	case 1:
		return time.Date(2000+p(100), time.Month(1+p(12)), 1+p(28), p(24), p(60), p(60), p(1000)*int(time.Millisecond), time.UTC)
	case 2:
		return base.Add(time.Duration(p(30)) * time.Second)
	}
	return time.Now().UTC().Truncate(time.Millisecond)
}

// record returns a record whose number makes it different from all others.
func record(p pick, id string, number int) sessionstore.Record {
	text := text
	if p(20) == 19 { // the largest record
		part := one(p, kit.Texts()...)
		text = func(_ pick, limit int) string { return fitted(strings.Repeat(part, limit/len(part)+1), limit) }
	}
	created, accessed := moment(p), moment(p)
	switch p(16) { // they may be unset
	case 14:
		created = time.Time{}
	case 15:
		accessed = time.Time{}
	}
	return sessionstore.Record{
		ID: id, Subject: fitted(fmt.Sprintf("%d %s", number, text(p, maxText)), maxText), Issuer: text(p, maxText), WorkspaceID: text(p, maxText), ProtocolVersion: text(p, maxText),
		ClientInfo: sessionstore.ClientInfo{Name: text(p, maxText), Version: text(p, maxText)}, CreatedAt: created, LastAccessedAt: accessed,
		Owner: text(p, maxText), State: text(p, maxState),
	}
}

// alikeOwners returns owners that a careless store might confuse with each other.
func alikeOwners(family int) []string {
	if family == families {
		return []string{"", "\x00", "server", "server\x00", "server\x00a"}
	}
	return append(kit.Alike("server", family), "")
}

// someOwners returns owners that a store might confuse, and the empty owner.
func someOwners(p pick) []string {
	all, start := alikeOwners(p(families+1)), strings.Repeat("s", one(p, 0, 250, 800))
	for i := range all {
		all[i] = start + all[i]
	}
	return append(all, "")
}

// families is the number of ways in which the IDs that newIDs returns can be alike.
const families = kit.Families

// newIDs returns unused IDs that a careless store might confuse with each other.
func newIDs(family int) []string { return kit.Alike(rand.Text(), family) }

// lifetime returns a lifetime of days, or possibly of seconds if soon is set.
func lifetime(p pick, soon bool) time.Duration {
	if soon && p(2) == 1 {
		return one(p, time.Second, 1500*time.Millisecond, 2*time.Second, 3*time.Second, 700*time.Millisecond, 5*time.Second, 1400*time.Millisecond, time.Nanosecond)
	}
	const day = 24 * time.Hour
	return one(p, time.Hour, 10*time.Minute, 90*time.Second, 2*time.Minute, 30*day, 25*day, 7*day, day, 13*time.Hour+7*time.Second, 29*day+11*time.Hour+59*time.Second)
}

// operation returns a call that the contract allows, on one of ids. A Touch may be on several.
func operation(p pick, ids, owners []string, number int, replaces, soon bool) []Operation {
	id := ids[p(len(ids))]
	methods := []string{methodPut, methodGet, methodTouch, methodDelete, methodGet, methodPut, methodTouch}
	if replaces {
		methods = append(methods, methodReplace, methodReplace, methodReplace)
	}
	op := Operation{Method: one(p, methods...), ID: id}
	switch op.Method {
	case methodPut:
		op.Record, op.TTL = record(p, id, number), lifetime(p, soon)
	case methodReplace:
		op.Record, op.Owner = record(p, id, number), one(p, owners...)
		if p(2) == 1 {
			op.TTL = lifetime(p, soon)
		}
	case methodTouch:
		ops := make([]Operation, 1+p(4))
		for i := range ops {
			ops[i] = Operation{Method: methodTouch, ID: ids[p(len(ids))], Accessed: moment(p), TTL: lifetime(p, soon)}
		}
		return ops
	}
	if op.Record.ID != "" && p(8) < 7 {
		op.Record.Owner = one(p, owners...)
	}
	return []Operation{op}
}

// hashes returns functions that a store might use in place of an ID: 32 bits of the ID or of a digest.
func hashes() map[string]func(string) uint32 {
	polynomial := func(start, factor uint32) func(string) uint32 {
		return func(id string) uint32 {
			h := start
			for _, c := range []byte(id) {
				h = factor*h + uint32(c)
			}
			return h
		}
	}
	return map[string]func(string) uint32{
		"CRC-32":    func(id string) uint32 { return crc32.ChecksumIEEE([]byte(id)) },
		"CRC-32C":   func(id string) uint32 { return crc32.Checksum([]byte(id), crc32.MakeTable(crc32.Castagnoli)) },
		"Adler-32":  func(id string) uint32 { return adler32.Checksum([]byte(id)) },
		"FNV-1":     func(id string) uint32 { h := fnv.New32(); _, _ = h.Write([]byte(id)); return h.Sum32() },
		"FNV-1a":    func(id string) uint32 { h := fnv.New32a(); _, _ = h.Write([]byte(id)); return h.Sum32() },
		"FNV-1a/64": func(id string) uint32 { h := fnv.New64a(); _, _ = h.Write([]byte(id)); return uint32(h.Sum64()) }, //nolint:gosec // half of it
		"Murmur3":   murmur3, "hashCode": polynomial(0, 31), "djb2": polynomial(5381, 33),
		"its start": func(id string) uint32 { return binary.BigEndian.Uint32([]byte(id)) },
		"its end":   func(id string) uint32 { return binary.BigEndian.Uint32([]byte(id)[len(id)-4:]) },
	}
}

// murmur3 is MurmurHash3_x86_32 with the seed 0.
func murmur3(id string) uint32 {
	b, h := []byte(id), uint32(0)
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(b)), 13)*5 + 0xe6546b64
	}
	var rest [4]byte
	copy(rest[:], b)
	h ^= mix(binary.LittleEndian.Uint32(rest[:])) ^ uint32(len(id)) //nolint:gosec // ids are short
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// collide returns two IDs with the same hash. It tries IDs until it finds a pair, after about 80,000 for 32 bits.
func collide(hash func(string) uint32) []string {
	tag, seen := rand.Text(), map[uint32]int{}
	id := func(i int) string { // each ID has a different start and end, so that those collide by chance too
		mixed := uint64(i+1) * 0x9e3779b97f4a7c15 // splitmix64
		mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
		mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
		return strconv.FormatUint(mixed>>32, 36) + tag + strconv.FormatUint(mixed&0xffffffff, 36)
	}
	for i := 0; ; i++ {
		h := hash(id(i))
		if other, ok := seen[h]; ok {
			return []string{id(other), id(i)}
		}
		seen[h] = i
	}
}
