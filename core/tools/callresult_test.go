package tools

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestAResultIsReadInOnePass(t *testing.T) {
	for text, want := range map[string]callResult{
		`{"content":[{"type":"text","text":"\"isError\":true, \"uri\":"}]}`: {},
		`{"isError":true}`:                 {isError: true},
		`{"isError" : true, "content":[]}`: {isError: true},
		`{"is\u0045rror":true}`:            {isError: true},
		`{"isError":false,"structuredContent":{"isError":true,"resultType":"input_required","content":[{"uri":"x"}]}}`: {},
		`{"resultType":"input_required"}`:                                           {needsInput: true},
		`{"resultType":"complete"}`:                                                 {},
		`{"content":[7,{"type":"text"},{"type":"resource_link","uri":"a:b"}]}`:      {linked: true},
		`{"content":[{"type":"resource","resource":{"uri":"a:b"}}],"isError":true}`: {linked: true, isError: true},
		`{"content":{"uri":"a:b"}}`:                                                 {},
		`[{"isError":true}]`:                                                        {},
		`{"isError":true`:                                                           {},
		``:                                                                          {},
	} {
		if got := readResult([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// BenchmarkReadResult compares two ways to read a 64 KB result: in one pass, and with a separate search for each word.
func BenchmarkReadResult(b *testing.B) {
	text, _ := json.Marshal(strings.Repeat("the quick brown fox ", 64<<10/20)) // a string always marshals
	result := []byte(`{"content":[{"type":"text","text":` + string(text) + `}]}`)
	b.Run("one pass", func(b *testing.B) {
		b.SetBytes(int64(len(result)))
		for b.Loop() {
			readResult(result)
		}
	})
	b.Run("five searches", func(b *testing.B) {
		b.SetBytes(int64(len(result)))
		for b.Loop() {
			for _, word := range []string{`"uri"`, `"isError"`, `"input_required"`, `"isError"`, `"isError"`} {
				_ = bytes.Contains(result, []byte(word))
			}
		}
	})
}
