package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/params"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

const example = `{"properties":{"text":{"type":"string"},"n":{"type":"integer"},"x":{"type":["null","number"]},"on":{"type":"boolean"},
	"tags":{"type":"array"},"o":{"type":"object"},"any":{}},"required":["text"]}`

func TestAToolOfAnAppThatIsNotRunningSaysWhatToDo(t *testing.T) {
	for status, want := range map[string]string{
		"starting":                     `app "calc" is starting: try again in a moment`,
		"stopped":                      `app "calc" is stopped; ` + "`ropewalk app start calc` starts it",
		"dead:it exited with status 7": `app "calc" is dead: it exited with status 7; ` + "`ropewalk app start calc` starts it",
		"running":                      `no running app has a tool "calc__add"`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			name, reason, _ := strings.Cut(status, ":")
			_, _ = fmt.Fprintf(w, `{"status":%q,"lastError":%q}`, name, reason)
		}))
		err := missing(t.Context(), &apiclient.Client{Server: server.URL, HTTP: server.Client()}, "calc__add", nil)
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", status, err, want)
		}
	}
}

func TestFlagsBecomeArgumentsWithTheTypesInTheSchema(t *testing.T) {
	var s params.Schema
	if err := json.Unmarshal([]byte(example), &s); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"t --text hello --n 3 --x 1.5 --on":      `{"n":3,"on":true,"text":"hello","x":1.5}`,
		"t --text=-5 --on=false":                 `{"on":false,"text":"-5"}`,
		"t --tags a --tags 2":                    `{"tags":["a",2]}`,
		`t --tags [1,2] --o {"a":1}`:             `{"o":{"a":1},"tags":[1,2]}`,
		"t --any hello":                          `{"any":"hello"}`,
		"t --any 3 --json":                       `{"any":3}`,
		"t --n three":                            "--n must be a whole number",
		"t --nothing 1":                          `no parameter "nothing"`,
		"t u":                                    "not a parameter",
		"--text x":                               "name a tool",
		"t --workspace ws_a -- --text workspace": `{"text":"workspace"}`,
	} {
		c := &cli.Connection{}
		parent := &cobra.Command{Use: "tool"}
		c.Bind(parent)
		cmd := callCommand(c)
		parent.AddCommand(cmd)
		parsed, err := parse(cmd, strings.Fields(line))
		var got any
		if err == nil {
			got, err = parsed.arguments(strings.NewReader(""), s)
		}
		text, _ := json.Marshal(got)
		if err != nil {
			text = []byte(err.Error())
		}
		if string(text) != want && (err == nil || !strings.Contains(string(text), want)) {
			t.Errorf("%s gives %s, want %s", line, text, want)
		}
	}
}
