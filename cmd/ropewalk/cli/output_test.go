package cli

import (
	"strings"
	"testing"
)

func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	id := "usr_" + strings.Repeat("0", 32)
	people := [][]string{{"ada.lovelace@analytical-engines.example", "Ada Lovelace", "admin", id}, {"bob@example.com", "", "member", id}}
	tools := [][]string{{"notes__search", "Searches all notes of a notebook for words, and returns them with their dates"}, {"日本__検索", "検索 検索 検索 検索 検索 検索 検索 検索 検索"}}
	for name, table := range map[string]struct {
		width  int
		header []string
		rows   [][]string
		want   string // in the output
	}{
		"a wide terminal changes nothing":             {200, []string{"EMAIL", "NAME", "ROLE", "ID"}, people, "bob@example.com                                        member  " + id},
		"sentences are cut off":                       {60, []string{"TOOL", "DESCRIPTION"}, tools, "notes__search  Searches all notes of a notebook for words, …"},
		"rows become records when ids need the space": {60, []string{"EMAIL", "NAME", "ROLE", "ID"}, people, "\n\nEMAIL  bob@example.com\nROLE   member\nID     " + id + "\n"},
		"a narrow terminal gets records":              {30, []string{"TOOL", "DESCRIPTION"}, tools, "DESCRIPTION  Searches all\n             notes of a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := make([][]string, len(table.rows))
			for i, row := range table.rows {
				rows[i] = append([]string{}, row...)
			}
			var out strings.Builder
			o := &Output{Writer: &out, terminal: true, width: table.width}
			if err := o.Table(table.header, rows); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), table.want) {
				t.Errorf("want %q in\n%s", table.want, out.String())
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimSuffix(line, "\n"); displayWidth(line) > table.width && !strings.Contains(line, id) && !strings.Contains(line, "@") {
					t.Errorf("a line is %d columns wide on a terminal of %d columns: %q", displayWidth(line), table.width, line)
				}
			}
		})
	}
}

func TestRecordsAreWrappedBetweenWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := &Output{Writer: &out, terminal: true, width: 40}
	err := o.Record([][2]string{{"Server", "https://tools.example.com, version v0.9.0-12-g0123456789, up for 3h"}, {"Model", "none"}})
	want := "Server  https://tools.example.com,\n        version v0.9.0-12-g0123456789,\n        up for 3h\nModel   none\n"
	if err != nil || out.String() != want {
		t.Errorf("got %v and\n%s", err, out.String())
	}
}
