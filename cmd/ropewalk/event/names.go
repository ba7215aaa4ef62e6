package event

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core"
)

// known returns the events that a server of this version sends, and when it sends each.
func known() [][2]string {
	return [][2]string{
		{core.EventBundleProgress, "a step of an installation or an update has started"},
		{core.EventBundleInstalled, "an app was installed and is running"},
		{core.EventBundleInstallFailed, "an app could not be installed"},
		{core.EventBundleUninstalled, "an app was uninstalled"},
		{core.EventBundleStarted, "an app was started, including by a restart or an update"},
		{core.EventBundleStopped, "an app was stopped"},
		{core.EventBundleCrashed, "an app's process exited, and is being restarted"},
		{core.EventBundleRecovered, "an app that had crashed is running again"},
		{core.EventBundleDead, "an app is no longer restarted automatically"},
		{core.EventAppPermissions, "a person decided what an app may use"},
		{core.EventAppDenied, "an app was refused something for the first time"},
		{core.EventDataChanged, "a tool call may have changed data"},
		{core.EventPinAdded, "an app has a new tool, without a new version"},
		{core.EventPinChanged, "an app changed a tool, without a new version"},
		{core.EventPinDecided, "a change to a tool was accepted or refused"},
		{core.EventApprovalRequested, "a tool call is waiting for a person"},
		{core.EventApprovalDecided, "a tool call that waited was approved or refused"},
		{core.EventApprovalEnded, "a tool call that waited was cancelled, or expired"},
		{core.EventApprovalWithdrawn, "calls to a tool are no longer always allowed, and need approval again"},
		{core.EventAccountLinked, "you linked an account for a remote app"},
		{core.EventAccountLoginNeeded, "one of your accounts needs a new login"},
		{core.EventAccountUnlinked, "one of your accounts was unlinked"},
		{core.EventConversationUpdated, "one of your conversations has a new title"},
		{core.EventConversationDeleted, "one of your conversations was deleted"},
		{core.EventConversationQueued, "one of your messages was queued until a run ends, or is no longer queued"},
		{core.EventHeartbeat, "every 30 seconds; printed with --heartbeats or if --only matches it"},
	}
}

// list returns the known events, one per line, for the help.
func list() string {
	var b strings.Builder
	for _, e := range known() {
		_, _ = fmt.Fprintf(&b, "\n  %-22s %s", e[0], e[1])
	}
	return b.String()
}

// check rejects an invalid pattern, and warns about one that matches no event: a newer server may have more.
func check(cmd *cobra.Command, patterns []string) error {
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return cli.Usage(fmt.Errorf("--only %s is not a pattern; use names such as bundle.dead or bundle.*", pattern))
		}
		if !slices.ContainsFunc(known(), func(e [2]string) bool { return matches(pattern, e[0]) }) {
			cmd.PrintErrf("warning: --only %s matches no known event; `%s --help` lists them\n", pattern, cmd.CommandPath())
		}
	}
	return nil
}

// matches reports whether an event's name matches a pattern.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
