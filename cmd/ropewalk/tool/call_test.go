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
		"starting":                     `app "calc" is starting; try again in a moment`,
		"stopped":                      `app "calc" is stopped; ` + "`ropewalk app start calc` starts it",
		"dead:it exited with status 7": `app "calc" is dead: it exited with status 7; ` + "`ropewalk app start calc` starts it",
		"running":                      `no running app has a tool "calc__add"`,
		"running::user":                `app "calc" lists its tools only after a login; ` + "`ropewalk account link calc` links your account",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			name, reason, _ := strings.Cut(status, ":")
			reason, auth, _ := strings.Cut(reason, ":")
			_, _ = fmt.Fprintf(w, `{"status":%q,"lastError":%q,"auth":%q}`, name, reason, auth)
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
		"--text x":                               "specify a tool",
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

// The server lists the account as linked on the third request. After the call, the command first lists the accounts,
// and then checks whether the list has changed.
func TestACallWaitsForALoginAndIsThenMade(t *testing.T) {
	const page = "http://localhost/v1/accounts/link?account=work&app=far&for=usr_a"
	for _, c := range []struct {
		name, flags string
		calls       int
		says        string
	}{{"waiting", "", 2, "alice"}, {"not waiting", "--no-wait", 1, "needs a login"}} {
		t.Run(c.name, func(t *testing.T) {
			calls, lists := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/v1/tools":
					_, _ = fmt.Fprint(w, `{"tools":[{"name":"far__change","server":"far","tool":"change"}]}`)
				case "/v1/accounts":
					lists++
					others := `{"id":"acc_2","name":"work","owner":"usr_b","state":"active","linkedAt":"` + fmt.Sprint(lists) + `"}` // another person's
					own := `{"id":"acc_1","name":"work","owner":"usr_a","state":"active","linkedAt":"2"}`
					if lists < 3 {
						own = `{"id":"acc_1","name":"work","owner":"usr_a","state":"login_needed","linkedAt":"1"}`
					}
					_, _ = fmt.Fprintf(w, `{"accounts":[%s,%s]}`, others, own)
				case "/v1/tools/call":
					if calls++; calls == 1 {
						w.WriteHeader(http.StatusConflict)
						_, _ = fmt.Fprintf(w, `{"error":"login_needed","message":"app far needs a login","details":{"app":"far","account":"work","url":%q}}`, page)
						return
					}
					if lists != 3 {
						t.Errorf("called again after %d lists", lists)
					}
					_, _ = fmt.Fprint(w, `{"content":[{"type":"text","text":"alice"}]}`)
				default:
					t.Errorf("requested %s", r.URL)
				}
			}))
			t.Cleanup(server.Close)
			var out, notes strings.Builder
			cmd := Command()
			cmd.SilenceUsage = true
			cmd.SetOut(&out)
			cmd.SetErr(&notes)
			cmd.SetArgs(append([]string{"call", "far_work__change", "--server", server.URL}, strings.Fields(c.flags)...))
			err := cmd.ExecuteContext(t.Context())
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			if calls != c.calls || !strings.Contains(said, c.says) || strings.Contains(notes.String(), page) != (c.calls > 1) {
				t.Errorf("%d calls, and the command says %q and %q", calls, said, notes.String())
			}
		})
	}
}

// Behind a proxy, the server that lists the tools and the server that describes the app may differ.
func TestACallWaitsForAnAppThatIsStarting(t *testing.T) {
	for _, status := range []string{"starting", "running"} {
		lists := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/tools" {
				_, _ = fmt.Fprintf(w, `{"status":%q,"toolCount":1}`, status)
				return
			}
			if lists++; lists == 1 {
				_, _ = w.Write([]byte(`{"tools":[{"name":"system__status","server":"system"}]}`))
				return
			}
			_, _ = w.Write([]byte(`{"tools":[{"name":"calc__add","server":"calc","tool":"add"}]}`))
		}))
		found, err := await(t.Context(), &apiclient.Client{Server: server.URL, HTTP: server.Client()}, "calc__add")
		server.Close()
		if err != nil || found.Tool != "add" || lists != 2 {
			t.Errorf("%s: %+v, %v after %d lists", status, found, err, lists)
		}
	}
}
