package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

func isEmpty(c core.PermissionChange) bool { return len(c.Allow)+len(c.Deny)+len(c.Revoke) == 0 }

// accessFlags are flags that name files, ports or variables.
type accessFlags struct{ read, write, net, only, env []string }

// bind adds the flags; each name starts with prefix.
func (f *accessFlags) bind(flags *pflag.FlagSet, prefix, verb string) {
	flags.StringArrayVar(&f.read, prefix+"read", nil, verb+" read access to a file or directory on the server's machine; may be repeated")
	flags.StringArrayVar(&f.write, prefix+"write", nil, verb+" read and write access to a file or directory; may be repeated")
	flags.StringArrayVar(&f.net, prefix+"net", nil, verb+" access to a port on the server's machine, such as localhost:6379; may be repeated")
}

// bindMore adds the flags for access that no definition requests.
func (f *accessFlags) bindMore(flags *pflag.FlagSet, verb string) {
	only := verb + " this HOST:PORT as a destination of --net-only; may be repeated"
	if verb == "allow" {
		only = "let the app connect only to this HOST:PORT (and to what --net allows); may be repeated"
	}
	flags.StringArrayVar(&f.only, "net-only", nil, only)
	flags.StringArrayVar(&f.env, "env", nil, verb+" access to a variable in the server's environment; may be repeated")
}

// all returns what the flags name. A relative path refers to the working directory if the server is on this machine.
func (f *accessFlags) all(here bool) (list []core.Access) {
	for _, given := range []struct {
		kind    core.PermissionKind
		targets []string
	}{{core.PermissionRead, f.read}, {core.PermissionWrite, f.write}, {core.PermissionNet, f.net}, {core.PermissionNetOnly, f.only}, {core.PermissionEnv, f.env}} {
		for _, target := range given.targets {
			if here && given.kind.IsPath() {
				target = absolute(target)
			}
			list = append(list, core.Access{Kind: given.kind, Target: target})
		}
	}
	return list
}

// absolute resolves a flag's path on this machine. A shell does not expand the ~ in --allow-read=~/notes. An empty
// text, such as from an unset variable, stays empty: it must not become the working directory.
func absolute(target string) string {
	if rest, ok := strings.CutPrefix(target, "~/"); ok || target == "~" {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, strings.TrimPrefix(rest, "~"))
		}
	}
	if path, err := filepath.Abs(target); err == nil && target != "" {
		return path
	}
	return target
}

func permissionsCommand(c *cli.Connection) *cobra.Command {
	trace := time.Duration(0)
	cmd := &cobra.Command{
		Use: "permissions NAME", Short: "Show what an app may use, what it asks for, and what it was refused", Args: cobra.ExactArgs(1),
		Long: "Show what an app may use, what it asks for, and what it was refused. Refused connections are always " +
			"listed. With --trace, the app is restarted and watched for a while. Use it in the meantime. The command " +
			"then lists the files that the app could not open.",
		Example: "  ropewalk app permissions files\n  ropewalk app permissions files --trace=1m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if trace == 0 {
				return do(c, cmd, http.MethodGet, args[0], "/permissions", nil, printPermissions)
			}
			cmd.PrintErrf("watching for %[2]v which files %[1]s opens\n", cli.Printable(args[0]), trace)
			return do(c, cmd, http.MethodPost, args[0], "/permissions/trace", map[string]int{"seconds": int(trace / time.Second)}, printPermissions)
		},
	}
	cmd.Flags().DurationVar(&trace, "trace", 0, "watch for this long which files the app opens, at most 5m; 20s without a value")
	cmd.Flags().Lookup("trace").NoOptDefVal = "20s"
	return cmd
}

// changeCommand returns a command that decides about an app's permissions: allow, deny or revoke.
func changeCommand(c *cli.Connection, verb, short, long, example string, into func(*core.PermissionChange) *[]core.Access) *cobra.Command {
	var f accessFlags
	var requested bool
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && strings.HasPrefix(args[1], "/") {
				return fmt.Errorf("%s %s for reading or for writing? Give it as --read %s or --write %s", verb, args[1], args[1], args[1])
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Client(cmd.Context())
			if err != nil {
				return err
			}
			var body core.PermissionChange
			list := into(&body)
			*list = f.all(local(client.Server))
			if requested {
				var now apps.Permissions
				if err := client.Get(cmd.Context(), appPath(args[0])+"/permissions", nil, &now); err != nil {
					return named(cmd.Context(), client, args[0], err)
				}
				for _, one := range now.Missing {
					*list = append(*list, one.Access)
				}
				if len(*list) == 0 {
					return fmt.Errorf("everything that %s asks for has already been decided", args[0])
				}
			}
			if isEmpty(body) {
				return cli.Usage(errors.New("nothing to change: give --read, --write, --net, --net-only or --env"))
			}
			return decide(c, cmd, args[0], body)
		},
	}
	f.bind(cmd.Flags(), "", verb)
	f.bindMore(cmd.Flags(), verb)
	if verb != "revoke" {
		cmd.Flags().BoolVar(&requested, "requested", false, verb+" everything that the app's definition asks for and nobody has decided yet")
	}
	return cmd
}

func allowCommand(c *cli.Connection) *cobra.Command {
	return changeCommand(c, "allow", "Let an app use files, ports or variables on the server's machine",
		"Let an app use files, ports or variables on the server's machine. The app restarts, and the command returns "+
			"once the change has taken effect. `ropewalk app permissions NAME` shows what an app asks for. "+
			"docs/permissions.md lists what cannot be allowed.",
		"  ropewalk app allow files --write ~/notes\n  ropewalk app allow cache --net localhost:6379", func(ch *core.PermissionChange) *[]core.Access { return &ch.Allow })
}

func denyCommand(c *cli.Connection) *cobra.Command {
	return changeCommand(c, "deny", "Deny an app access to something, and record the decision so that nobody is asked again", "",
		"  ropewalk app deny files --read ~/notes", func(ch *core.PermissionChange) *[]core.Access { return &ch.Deny })
}

func revokeCommand(c *cli.Connection) *cobra.Command {
	return changeCommand(c, "revoke", "Take back what an app was allowed or denied",
		"Take back what an app was allowed or denied. The command returns once the change has taken effect; by then, the app's processes and connections have ended.",
		"  ropewalk app revoke files --write ~/notes", func(ch *core.PermissionChange) *[]core.Access { return &ch.Revoke })
}

// decide sends a decision. It fails if the app should be running but is not.
func decide(c *cli.Connection, cmd *cobra.Command, name string, body core.PermissionChange) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var before, now apps.Permissions
	if len(body.Revoke) > 0 {
		if err := client.Get(cmd.Context(), appPath(name)+"/permissions", nil, &before); err != nil {
			return named(cmd.Context(), client, name, err)
		}
	}
	var answer json.RawMessage
	if err := client.Do(cmd.Context(), http.MethodPatch, appPath(name)+"/permissions", body, &answer); err != nil {
		return named(cmd.Context(), client, name, err)
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		return fmt.Errorf("the response does not match the API: %w", err)
	}
	if err := cli.Print(c, cmd, answer, printPermissions); err != nil {
		return err
	}
	if now.LastError != "" && len(body.Allow) > 0 {
		return fmt.Errorf("the permissions are recorded, but %s is %s: %s", name, now.Status, now.LastError)
	}
	if len(body.Revoke) > 0 && len(now.Permissions) == len(before.Permissions) { // such as a mistyped path
		return fmt.Errorf("nothing was revoked: %s has no such permission", name)
	}
	return nil
}

func printPermissions(o *cli.Output, p apps.Permissions) error {
	o.Line("%s is %s, in a sandbox at level %s", p.Name, o.State(string(p.Status)), p.Level)
	if p.Note != "" {
		o.Line("%s", p.Note)
	}
	rows := [][]string{}
	for _, one := range p.Permissions {
		rows = append(rows, []string{string(one.Kind), one.Target, one.State, one.By, one.At, one.Reason})
	}
	for _, path := range p.Configured.Read {
		rows = append(rows, []string{"read", path, "granted", "the configuration", "", ""})
	}
	for _, path := range p.Configured.Write {
		rows = append(rows, []string{"write", path, "granted", "the configuration", "", ""})
	}
	for _, one := range p.Missing {
		rows = append(rows, []string{string(one.Kind), one.Target, "asked for", "", "", "named by " + one.Reason})
	}
	for _, one := range p.Denials {
		rows = append(rows, []string{string(one.Kind), one.Target, fmt.Sprintf("refused %d times", one.Count), "", one.Last, ""})
	}
	if err := o.Table([]string{"KIND", "WHAT", "STATE", "BY", "AT", "WHY"}, rows); err != nil {
		return err
	}
	for _, hint := range p.Hints {
		o.Line("%s", hint)
	}
	return nil
}

// decisions are the permission flags of `app install` and other commands.
type decisions struct {
	allow, deny accessFlags
	requested   bool
}

func (d *decisions) bind(flags *pflag.FlagSet) {
	d.allow.bind(flags, "allow-", "allow")
	d.deny.bind(flags, "deny-", "deny")
	flags.BoolVar(&d.requested, "allow-requested", false, "allow everything that the app's definition asks for")
}

// given returns the decisions in the flags. It returns nil if there are none and nobody can be asked. The app is then
// installed without any permissions.
func (d *decisions) given(cmd *cobra.Command, here bool) *core.PermissionChange {
	ch := &core.PermissionChange{Allow: d.allow.all(here), Deny: d.deny.all(here)}
	if isEmpty(*ch) && !d.requested && !canAsk(cmd) {
		return nil
	}
	return ch
}

// asking sends a request, and sends it again if the app asked for something and a person, or a flag, has
// answered.
func (d *decisions) asking(cmd *cobra.Command, client *apiclient.Client, app string, decided *core.PermissionChange, send func() error) (err error) {
	for range 3 { // an app that is downloaded may ask for more than its arguments show
		done := progress(cmd, client)
		err = send()
		done()
		refused, ok := errors.AsType[*apiclient.Error](err)
		if !ok || refused.Code != "permissions_required" || !d.complete(cmd, app, decided, refused.Details) {
			break
		}
	}
	return err
}

func canAsk(cmd *cobra.Command) bool {
	return cli.IsTerminal(cmd.InOrStdin()) && cli.IsTerminal(cmd.ErrOrStderr())
}

// complete adds the answers of a person, or of --allow-requested, to the decisions made so far. It reports whether
// anything is new.
func (d *decisions) complete(cmd *cobra.Command, app string, ch *core.PermissionChange, details json.RawMessage) bool {
	var left struct{ Missing []core.PermissionRequest }
	if ch == nil || json.Unmarshal(details, &left) != nil || len(left.Missing) == 0 || !d.requested && !canAsk(cmd) {
		return false
	}
	for _, one := range left.Missing {
		answer := &one.Access
		if !d.requested {
			answer = ask(cmd, app, one)
		}
		if answer == nil {
			ch.Deny = append(ch.Deny, one.Access)
		} else {
			ch.Allow = append(ch.Allow, *answer)
		}
	}
	return true
}

// ask asks a person whether to grant one request. nil means no.
func ask(cmd *cobra.Command, app string, one core.PermissionRequest) *core.Access {
	question, answers := question(one)
	for range 5 {
		cmd.PrintErrf("%s wants to %s ", cli.Printable(app), question)
		line, err := readLine(cmd)
		word := strings.ToLower(strings.TrimSpace(line))
		if word == "" && err == nil {
			continue
		}
		if word == "" || strings.HasPrefix(word, "n") {
			return nil
		}
		if found, ok := answers[word[:1]]; ok {
			return &found
		}
		cmd.PrintErrln("Answer with one of the letters in brackets.")
	}
	return nil
}

// question returns the question to ask about a request, with the meaning of the answers.
func question(one core.PermissionRequest) (text string, answers map[string]core.Access) {
	if one.Kind == core.PermissionNet {
		return wish(one) + ": [n]o, [y]es?", map[string]core.Access{"y": one.Access}
	}
	answers = map[string]core.Access{"r": {Kind: core.PermissionRead, Target: one.Target}, "y": one.Access}
	choices := "[n]o, [r]ead"
	if slices.Contains(one.Choice, "write") {
		answers["w"] = core.Access{Kind: core.PermissionWrite, Target: one.Target}
		choices += ", read and [w]rite"
	}
	if one.Also != nil {
		answers["d"] = *one.Also
		choices += ", read the [d]irectory " + cli.Printable(one.Also.Target)
	}
	return wish(one) + ": " + choices + "?", answers
}

// wish returns the words that follow "wants to" in a question.
func wish(one core.PermissionRequest) string {
	target := cli.Line(one.Target)
	switch one.Kind {
	case core.PermissionNet:
		return "connect to " + target + " on this machine"
	case core.PermissionWrite:
		return "read and write " + target
	default:
		return "read " + target
	}
}

// readLine reads a line without consuming what follows it, because that answers another question.
func readLine(cmd *cobra.Command) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for {
		if _, err := cmd.InOrStdin().Read(one); err != nil {
			return string(line), err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
}

// printMissing prints what an installed app asks for, and how to allow it. The targets come from the app's definition,
// and people copy the command into a shell, so they are quoted.
func printMissing(cmd *cobra.Command, app string, missing []core.PermissionRequest) {
	for _, one := range missing {
		cmd.PrintErrf("%s may not use %s, which %s names: ropewalk app allow %s --%s %s\n", app, cli.Line(one.Target), one.Reason, app, one.Kind, cli.Line(shellquote.Join(one.Target)))
	}
}
