package kit

import (
	"context"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"
)

// Texts returns valid UTF-8 that encodings, databases, caches and log filters are known to change.
func Texts() []string {
	return []string{
		"plain", " spaces around ", "null", "UPPER and lower", `"quotes" and \backslashes\`, "line\nbreaks\r\nand\ttabs", "a NUL \x00 inside", "e\u0301", "\u00e9",
		"\u1e9b\u0323", "\uac00", "\u1100\u1161", "Ропы · 綱渡り · 🪢", "\u202eright to left", "\ufeffa mark", "<a href=x>&amp;</a>\u2028\u2029", "100 %s %d ${x} {{y}} $1",
		"'; DROP TABLE sessions; --", `{"json": [12345678901234567890, 1.0]}`, "NULL", "0", "-1", "1e3", "true", "\u00a0no break", "\x7f\x1b[31m", "İıſKﬁ", "trailing\x00", "\x00", "\ufffd", "ß", "\U0010ffff", "-",
		"2001:DB8:0:0::1", "[::1]:443", "Bearer eyJhbGciOiJub25lIn0.e30.", "password=hunter2", "4111 1111 1111 1111", "alice@example.com", "https://alice:secret@example.com/?token=x", "AKIAIOSFODNN7EXAMPLE",
		ascii(0, ' '), ascii(' ', '\x7f'),
	}
}

// ascii returns all characters of a range, any of which may separate fields or be an escape.
func ascii(from, to byte) string {
	all := make([]byte, 0, to-from)
	for c := from; c < to; c++ {
		all = append(all, c)
	}
	return string(all)
}

// Families is the number of ways in which names that Alike returns can resemble each other.
const Families = 18

// Alike returns names of up to 128 bytes that begin with tag and that a careless plugin might confuse with each other,
// because it cuts, decodes, folds, normalizes or matches them.
func Alike(tag string, family int) []string {
	long := strings.Repeat("x", 128-len(tag)-1)
	all := [Families][]string{
		{"a", "b", "", "[ab]"},
		{"k", "K"},
		{"\u00e9", "e\u0301", "e"},
		{"", " ", "\t", "\u00a0", "\x7f"},
		{long + "1", long + "2", long[:len(long)/2], strings.Repeat("é", len(long)/2)},
		{"%", "", "_", "*", "?"},
		{"/..", "", ":a", "\\", "'\";--", "\n"},
		{"\u212a", "K", "\uff2b"},
		{"A", "%41", "&#65;", `\u0041`, "=41"},
		{" b", "+b", "%20b", "_b", "-b"},
		{"\u200b", "", "\u00ad", "\ufeff", "\u2060"},
		{"ss", "ß", "ſs", "ẞ", "SS"},
		{"fi", "ﬁ", "ｆi", "f\u200di"},
		{"i", "İ", "ı", "i\u0307", "I"},
		{"o", "ø", "ö", "о", "O"},
		{"1", "01", "1.0", "１", "¹"},
		{"", ".", "/", "'", "''"},
		{"🪢", "🧵", "\ufffd", "🪢\ufe0f", "??"},
	}[family]
	names := make([]string, len(all), len(all)+2)
	for i, end := range all {
		names[i] = tag + end
	}
	switch family {
	case 1:
		names = append(names, strings.ToLower(tag)+"k")
	case 3:
		names = append(names, " "+tag)
	case 7:
		names = append(names, "1"+tag, "2"+tag)
	}
	return names
}

// Pick draws a number below n. All numbers are equally likely; rapid.IntRange would prefer small ones. Rapid shrinks to
// 0.
func Pick(draw *rapid.T, n int) int {
	const odd = 0x9e3779b97f4a7c15
	return int(rapid.Uint64().Draw(draw, "pick") * odd >> 33 % uint64(n)) //nolint:gosec // small
}

// Pause waits for d. If ctx ends first, it returns ctx's error.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AtOnce calls each for every number below n, on the given number of goroutines. The first error with which
// Must ends one of the calls ends AtOnce, too.
func AtOnce(ctx context.Context, n, workers int, each func(ctx context.Context, i int)) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range min(n, workers) {
		all.Go(func() {
			for i := range next {
				if err := Catch(func() { each(ctx, i) }); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	Must(context.Cause(ctx))
}
