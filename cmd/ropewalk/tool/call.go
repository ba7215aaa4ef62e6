package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/cmd/ropewalk/params"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

func callCommand(c *cli.Connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call TOOL [--PARAMETER VALUE ...]",
		Short: "Call a tool, with arguments as flags or as JSON on standard input",
		Long: "Call a tool. Its parameters are flags (`ropewalk tool show TOOL` lists them). A flag without a value is " +
			"true. Give a list as JSON, or repeat its flag. With `-` in place of the flags, the arguments are a JSON " +
			"object on standard input. If a parameter has the same name as an option of this command, write it as " +
			"--PARAMETER=VALUE after --.\n\nAPP_ACCOUNT__TOOL calls an app with a specific linked account. If the app " +
			"needs a login, the command prints a URL to open in a browser, waits for the login, and then makes the " +
			"call.",
		Example: "  ropewalk tool call sample__echo --text hello\n  echo '{\"text\":\"hello\"}' | ropewalk tool call sample__echo -",
		// The parameters are not known until the tool's params.Schema has arrived.
		DisableFlagParsing: true,
		RunE:               func(cmd *cobra.Command, args []string) error { return call(cmd, c, args) },
	}
	cmd.Flags().Bool(noWait, false, "fail immediately if the app needs a login")
	return cmd
}

// noWait is the flag for scripts, where nobody can open a page.
const noWait = "no-wait"

func call(cmd *cobra.Command, c *cli.Connection, args []string) error {
	line, err := parse(cmd, args)
	if err != nil {
		return cli.Usage(err)
	}
	if line.help {
		return cmd.Help()
	}
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	name, account := tools.SplitAccount(line.tool)
	t, err := await(cmd.Context(), client, name)
	if err != nil {
		return err
	}
	arguments, err := line.arguments(cmd.InOrStdin(), t.Definition.InputSchema)
	if err != nil {
		return cli.Usage(err)
	}
	var answer json.RawMessage
	body := map[string]any{"server": t.Server, "tool": t.Tool, "arguments": arguments}
	if account != "" {
		body["account"] = account
	}
	send := func() error { return client.Do(cmd.Context(), http.MethodPost, "/v1/tools/call", body, &answer) }
	err = send()
	for err != nil && cmd.Flag(noWait).Value.String() == "false" {
		needed, ok := loginNeeded(err)
		if !ok {
			break
		}
		if err := awaitLogin(cmd, client, needed); err != nil {
			return err
		}
		err = send() // the app has not received the call before
	}
	if err != nil {
		return explain(t.Name, err, !line.stdin && len(line.given) == 0 && isPiped(cmd.InOrStdin()))
	}
	return show(cmd, c, answer)
}

// loginWait is how long a call waits for a login, as calls to /mcp do.
const loginWait = 10 * time.Minute

// loginNeeded returns the account that a person has to link before the call can be made. ok is false for other errors.
func loginNeeded(err error) (needed core.AccountNeeded, ok bool) {
	e, ok := errors.AsType[*apiclient.Error](err)
	if !ok || e.Code != string(core.CodeLoginNeeded) || json.Unmarshal(e.Details, &needed) != nil {
		return needed, false
	}
	return needed, needed.URL != ""
}

// awaitLogin shows the page on which a person links an account, and waits until they have done so.
func awaitLogin(cmd *cobra.Command, client *apiclient.Client, needed core.AccountNeeded) error {
	before, err := cli.AccountsAt(cmd.Context(), client, needed.App)
	if err != nil {
		return err
	}
	cmd.PrintErrf("The app %s needs a login. Open this page in a browser in which you are logged in. The call is made after that:\n%s\n", cli.Printable(needed.App), cli.Printable(needed.URL))
	return cli.AwaitAccount(cmd, client, needed.URL, before, loginWait)
}

// isPiped reports whether standard input may contain arguments. It is not read without `-`, because a pipe from
// a scheduler or CI may never end.
func isPiped(stdin io.Reader) bool {
	file, ok := stdin.(*os.File)
	if !ok {
		return true
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// explain adds to an error how the arguments violate the tool's schema. piped reports whether standard input
// may contain arguments that were not read.
func explain(tool string, err error, piped bool) error {
	e, ok := errors.AsType[*apiclient.Error](err)
	if !ok || e.Code != "invalid_input" {
		return err
	}
	var d struct {
		Errors []struct{ Path, Message string }
	}
	_ = json.Unmarshal(e.Details, &d) // if there are no details, only the message is shown
	text := e.Error()
	for _, v := range d.Errors {
		text += "\n  " + strings.TrimPrefix(v.Path+": "+v.Message, ": ")
	}
	text += fmt.Sprintf("\n`ropewalk tool show %s` lists the parameters", tool)
	if piped {
		text += fmt.Sprintf("\nstandard input was not read; `ropewalk tool call %s -` takes the arguments from it, as a JSON object", tool)
	}
	return cli.Usage(errors.New(text))
}

// content is one part of a tool's result.
type content struct {
	Type, Text, URI, MimeType string
}

// show prints the text of a result, and returns an error if the tool failed.
func show(cmd *cobra.Command, c *cli.Connection, answer json.RawMessage) error {
	var r struct {
		Content []content
		IsError bool
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the response does not match the API: %w", err)
	}
	switch {
	case c.JSON:
		if err := cli.PrintJSON(cmd.OutOrStdout(), answer); err != nil {
			return err
		}
	default:
		o := cli.NewOutput(cmd.OutOrStdout())
		for _, part := range r.Content {
			text := part.Text
			if part.Type != "text" {
				text = strings.TrimSpace(fmt.Sprintf("[%s %s %s]", part.Type, part.MimeType, part.URI))
			}
			if _, err := fmt.Fprintln(o, o.Text(text)); err != nil {
				return err
			}
		}
	}
	if r.IsError {
		return errors.New("the tool reported an error")
	}
	return nil
}

// commandLine is what was typed after `tool call`.
type commandLine struct {
	tool  string
	given []params.Argument
	stdin bool
	help  bool
}

// parse separates the command's options from the tool's parameters.
func parse(cmd *cobra.Command, args []string) (line commandLine, err error) {
	_ = cmd.InheritedFlags() // adds them to cmd.Flags
	own := true              // before --, flags that the command has are its own
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		name, text, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case own && word == "--":
			own = false
		case word == "-":
			line.stdin = true
		case own && (word == "--help" || word == "-h"):
			line.help = true
		case !strings.HasPrefix(word, "--"):
			if line.tool != "" {
				return line, fmt.Errorf("%q is not a parameter; write --PARAMETER VALUE (`ropewalk tool show %s` lists the parameters)", word, line.tool)
			}
			line.tool = word
		default:
			known := cmd.Flags().Lookup(name)
			boolean := own && known != nil && known.Value.Type() == "bool"
			if !hasValue && !boolean && len(args) > 0 && !strings.HasPrefix(args[0], "--") && args[0] != "-" {
				text, hasValue, args = args[0], true, args[1:]
			}
			if !hasValue {
				text = "true"
			}
			if !own || known == nil {
				line.given = append(line.given, params.Argument{Name: name, Text: text})
			} else if err := cmd.Flags().Set(name, text); err != nil {
				return line, err
			}
		}
	}
	if line.tool == "" && !line.help {
		return line, errors.New("specify a tool: ropewalk tool call TOOL [--PARAMETER VALUE ...]")
	}
	return line, nil
}

// arguments returns the arguments of the call.
func (l commandLine) arguments(stdin io.Reader, s params.Schema) (any, error) {
	if !l.stdin {
		return s.Arguments(l.given)
	}
	if len(l.given) > 0 {
		return nil, errors.New("give the arguments as flags or on standard input, not both")
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("standard input must be a JSON object: %w", err)
	}
	return object, nil
}
