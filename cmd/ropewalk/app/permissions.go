package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/internal/apiclient"
)

// access is something that an app may be permitted to use (docs/api.md 3.9).
type access struct {
	Kind   string `json:"kind"`
	Target string `json:"target"`
}

// asked is an access that the app's definition requests.
type asked struct {
	access
	Reason string
	Also   *access
	Choice []string
}

// change is a decision about an app's permissions.
type change struct {
	Allow  []access `json:"allow,omitempty"`
	Deny   []access `json:"deny,omitempty"`
	Revoke []access `json:"revoke,omitempty"`
}

func (c change) isEmpty() bool { return len(c.Allow)+len(c.Deny)+len(c.Revoke) == 0 }

// permissions is the response of /v1/apps/NAME/permissions.
type permissions struct {
	Name, Status, LastError, Level, Note string
	Permissions                          []struct {
		access
		State, Reason, By, At string
	}
	Missing    []asked
	Configured struct{ Read, Write, Network []string }
	Denials    []struct {
		access
		Count    int
		Last     string
		Observed bool
	}
	Hints []string
}

// accessFlags are flags that name accesses.
type accessFlags struct{ read, write, net, only, env []string }

// bind adds the flags; each name starts with prefix.
func (f *accessFlags) bind(flags *pflag.FlagSet, prefix, verb string) {
	flags.StringArrayVar(&f.read, prefix+"read", nil, verb+" read access to a file or directory of the server's machine; may be repeated")
	flags.StringArrayVar(&f.write, prefix+"write", nil, verb+" read and write access to a file or directory; may be repeated")
	flags.StringArrayVar(&f.net, prefix+"net", nil, verb+" access to a port of the server's machine, such as localhost:6379; may be repeated")
}

// bindMore adds the flags for accesses that no definition requests.
func (f *accessFlags) bindMore(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.only, "net-only", nil, "a destination HOST:PORT; with one, the app connects to no others. May be repeated")
	flags.StringArrayVar(&f.env, "env", nil, "a variable of the server's environment; may be repeated")
}

// all returns the accesses. A relative path refers to the working directory if the server is on this machine.
func (f *accessFlags) all(here bool) (list []access) {
	for _, given := range []struct {
		kind    string
		targets []string
	}{{"read", f.read}, {"write", f.write}, {"net", f.net}, {"netOnly", f.only}, {"env", f.env}} {
		for _, target := range given.targets {
			if path, err := filepath.Abs(target); here && err == nil && (given.kind == "read" || given.kind == "write") {
				target = path
			}
			list = append(list, access{given.kind, target})
		}
	}
	return list
}

func permissionsCommand(c *cli.Connection) *cobra.Command {
	trace := time.Duration(0)
	cmd := &cobra.Command{
		Use: "permissions NAME", Short: "Show what an app may use, what it asks for, and what it was refused", Args: cobra.ExactArgs(1),
		Long: "Show what an app may use, what it asks for, and what it was refused. Refused connections are always listed. With --trace the app " +
			"is started again and watched for a while, and the files are listed that it could not open: use it meanwhile.",
		Example: "  ropewalk app permissions files\n  ropewalk app permissions files --trace=1m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if trace == 0 {
				return do(c, cmd, http.MethodGet, args[0], "/permissions", nil, printPermissions)
			}
			cmd.PrintErrf("watching which files %s opens for %v\n", cli.Printable(args[0]), trace)
			return do(c, cmd, http.MethodPost, args[0], "/permissions/trace", map[string]int{"seconds": int(trace / time.Second)}, printPermissions)
		},
	}
	cmd.Flags().DurationVar(&trace, "trace", 0, "watch which files the app opens for this long, at most 5m; 20s without a value")
	cmd.Flags().Lookup("trace").NoOptDefVal = "20s"
	return cmd
}

// changeCommand returns a command that decides about an app's permissions: allow, deny or revoke.
func changeCommand(c *cli.Connection, verb, short, long, example string, into func(*change) *[]access) *cobra.Command {
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
			var body change
			list := into(&body)
			*list = f.all(local(client.Server))
			if requested {
				var now permissions
				if err := client.Get(cmd.Context(), appPath(args[0])+"/permissions", nil, &now); err != nil {
					return named(cmd.Context(), client, args[0], err)
				}
				for _, one := range now.Missing {
					*list = append(*list, one.access)
				}
				if len(*list) == 0 {
					return fmt.Errorf("%s asks for nothing that is undecided", args[0])
				}
			}
			if body.isEmpty() {
				return cli.Usage(errors.New("nothing to change: give --read, --write, --net, --net-only or --env"))
			}
			return decide(c, cmd, args[0], body)
		},
	}
	f.bind(cmd.Flags(), "", verb)
	f.bindMore(cmd.Flags())
	if verb != "revoke" {
		cmd.Flags().BoolVar(&requested, "requested", false, verb+" everything that the app's definition asks for and that has not been decided yet")
	}
	return cmd
}

func allowCommand(c *cli.Connection) *cobra.Command {
	return changeCommand(c, "allow", "Let an app use files, ports or variables of the server's machine",
		"Let an app use files, ports or variables of the server's machine. The command returns when that is in force: the app has been started "+
			"again. `ropewalk app permissions NAME` shows what an app asks for, and docs/permissions.md what cannot be allowed.",
		"  ropewalk app allow files --write ~/notes\n  ropewalk app allow cache --net localhost:6379", func(ch *change) *[]access { return &ch.Allow })
}

func denyCommand(c *cli.Connection) *cobra.Command {
	return changeCommand(c, "deny", "Remember that an app may not use something, so that nobody is asked again", "",
		"  ropewalk app deny files --read ~/notes", func(ch *change) *[]access { return &ch.Deny })
}

func revokeCommand(c *cli.Connection) *cobra.Command {
	return changeCommand(c, "revoke", "Take back what an app was allowed or denied",
		"Take back what an app was allowed or denied. The command returns when that is in force: the app's processes and connections have ended.",
		"  ropewalk app revoke files --write ~/notes", func(ch *change) *[]access { return &ch.Revoke })
}

// decide sends a decision. It fails if the app should be running but is not.
func decide(c *cli.Connection, cmd *cobra.Command, name string, body change) error {
	client, err := c.Client(cmd.Context())
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.Do(cmd.Context(), http.MethodPatch, appPath(name)+"/permissions", body, &answer); err != nil {
		return named(cmd.Context(), client, name, err)
	}
	var now permissions
	if err := json.Unmarshal(answer, &now); err != nil {
		return fmt.Errorf("the response does not match the API: %w", err)
	}
	if err := cli.Print(c, cmd, answer, printPermissions); err != nil {
		return err
	}
	if now.LastError != "" && len(body.Allow) > 0 {
		return fmt.Errorf("the permissions are recorded, but %s is %s: %s", name, now.Status, now.LastError)
	}
	return nil
}

func printPermissions(o *cli.Output, p permissions) error {
	o.Line("%s is %s, in a sandbox of level %s", p.Name, o.State(p.Status), p.Level)
	if p.Note != "" {
		o.Line("%s", p.Note)
	}
	rows := [][]string{}
	for _, one := range p.Permissions {
		rows = append(rows, []string{one.Kind, one.Target, one.State, one.By, one.At, one.Reason})
	}
	for _, path := range p.Configured.Read {
		rows = append(rows, []string{"read", path, "granted", "the configuration", "", ""})
	}
	for _, path := range p.Configured.Write {
		rows = append(rows, []string{"write", path, "granted", "the configuration", "", ""})
	}
	for _, one := range p.Missing {
		rows = append(rows, []string{one.Kind, one.Target, "asked for", "", "", "named by " + one.Reason})
	}
	for _, one := range p.Denials {
		rows = append(rows, []string{one.Kind, one.Target, fmt.Sprintf("refused %d times", one.Count), "", one.Last, ""})
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
	flags.BoolVar(&d.requested, "allow-requested", false, "allow all that the app's definition asks for")
}

// given returns the decisions in the flags. It returns nil if there are none and nobody can be asked. The app is then
// installed without any permissions.
func (d *decisions) given(cmd *cobra.Command, here bool) *change {
	ch := &change{Allow: d.allow.all(here), Deny: d.deny.all(here)}
	if ch.isEmpty() && !d.requested && !canAsk(cmd) {
		return nil
	}
	return ch
}

// asking sends a request, and sends it again if the app asked for something and a person, or a flag, has
// answered.
func (d *decisions) asking(cmd *cobra.Command, client *apiclient.Client, app string, decided *change, send func() error) (err error) {
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
func (d *decisions) complete(cmd *cobra.Command, app string, ch *change, details json.RawMessage) bool {
	var left struct{ Missing []asked }
	if ch == nil || json.Unmarshal(details, &left) != nil || len(left.Missing) == 0 || !d.requested && !canAsk(cmd) {
		return false
	}
	for _, one := range left.Missing {
		answer := &one.access
		if !d.requested {
			answer = ask(cmd, app, one)
		}
		if answer == nil {
			ch.Deny = append(ch.Deny, one.access)
		} else {
			ch.Allow = append(ch.Allow, *answer)
		}
	}
	return true
}

// ask asks a person about one access. nil means no.
func ask(cmd *cobra.Command, app string, one asked) *access {
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
	}
	return nil
}

// question returns the question to ask about an access, with the meaning of the answers.
func question(one asked) (text string, answers map[string]access) {
	target := cli.Printable(one.Target)
	if one.Kind == "net" {
		return "connect to " + target + " of this machine: [n]o, [y]es?", map[string]access{"y": one.access}
	}
	answers = map[string]access{"r": {"read", one.Target}}
	verb, choices := "read "+target, "[n]o, [r]ead"
	if slices.Contains(one.Choice, "write") {
		answers["w"] = access{"write", one.Target}
		choices += ", read and [w]rite"
	}
	if one.Kind == "write" {
		verb = "read and write " + target
	}
	if one.Also != nil {
		answers["d"] = *one.Also
		choices += ", read the [d]irectory " + cli.Printable(one.Also.Target)
	}
	return verb + ": " + choices + "?", answers
}

// readLine reads a line without consuming what follows it, which answers another question.
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

// printMissing prints what an installed app asks for, and how to allow it.
func printMissing(cmd *cobra.Command, app string, missing []asked) {
	for _, one := range missing {
		cmd.PrintErrf("%s may not use %s, which %s names: ropewalk app allow %s --%s %s\n", app, cli.Printable(one.Target), one.Reason, app, one.Kind, cli.Printable(one.Target))
	}
}
