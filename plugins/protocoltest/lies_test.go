package protocoltest_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	. "github.com/ropewalk/ropewalk/plugins/protocoltest" //nolint:revive // for the names of the properties
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// lieVariable is the environment variable that makes the test binary a plugin with that lie.
const lieVariable = "ROPEWALK_TEST_LIE"

func TestMain(m *testing.M) {
	switch lie := os.Getenv(lieVariable); lie {
	case "":
		os.Exit(m.Run())
	case "none, with the SDK":
		sessionstore.Serve(memory.New())
	default:
		(&liar{lie: lie}).main()
	}
}

// lies returns the lies, by the property that must catch them.
func lies() map[string][]string {
	return map[string][]string{
		Cookie: {
			"serves without the cookie", "exits with status 0", "prints what it is to standard output", "does not say what it is", "serves any kind that is requested",
		},
		Handshake: {
			"announces netrpc in its handshake line", "announces a version that it does not serve", "listens on every address", "serves in plain text",
			"also listens on every address", "listens on every address once it is configured", "accepts datagrams on every address", "accepts datagrams on IPv6 loopback",
			"serves a page about itself on loopback", "uses the same key at every start",
		},
		Guarded: {"requires no certificate", "accepts any certificate"},
		Introduced: {
			"has no health service", "is not healthy", "returns a different Info each time", "reports a different kind in Info", "has an upper-case name", "has no version",
			"is not healthy once it is configured", "is not healthy after a call", "fails calls of its kind with an unknown code", "returns errors without a message",
		},
		Configured: {
			"refuses good settings", "accepts settings that do not exist", "reports problems without a path", "reports one problem at a time",
			"fails instead of reporting problems", "accepts values of the wrong type", "ignores the case of setting names", "accepts settings that are not an object", "accepts settings only once",
			"accepts a list of objects as a string", "accepts null as an object", "starts its problems with a capital letter", "reports problems without a message",
			"suggests a setting that does not exist", "suggests a setting when the type is wrong", "fails without a data directory", "uses the current directory without a data directory",
			"rejects unknown capabilities", "rejects newer servers", "reports wrong types but not unknown names",
		},
		Validated: {
			"validates settings that do not exist", "validates values of the wrong type", "reports problems with good settings", "declares Validate without implementing it",
			"implements Validate without declaring it", "validates types but not unknown names", "validates settings that are not an object",
			"creates the data directory in Validate", "writes to the data directory in Validate", "applies the settings in Validate",
		},
		Secretive: {
			"repeats values in problems", "logs its settings", "logs its settings in hex", "repeats values in problems of Validate", "logs the settings that it validates",
			"logs the tokens that it refuses", "logs the tokens that it refuses in base64", "repeats tokens in errors", "passes its settings to a child as an argument", "writes its settings to a file that everybody can read",
		},
		Loaded: {"accepts messages of at most 4 MiB", "returns RESOURCE_EXHAUSTED for more than 50 concurrent calls", "keeps a worker busy for each abandoned call", "exits when it cannot read a message", "prints the names of unknown methods"},
		Steady: {"leaks 200 KB for each abandoned call", "leaks 200 KB for each health check", "leaks a file descriptor on every thirtieth call", "leaks 20 KB for each call", "leaks 20 KB for each call of its kind", "starts a child on every hundredth call", "writes a file on each call"},
		Silent: {
			"prints while it is configured", "prints while it exits", "prints on every hundredth call of its kind", "prints a second after it is configured", "prints on the fifth call of its kind",
			"prints two seconds after a call",
		},
		Ending: {
			"ignores Shutdown", "leaves its socket behind", "ignores SIGTERM", "takes long to exit", "waits for open streams at Shutdown",
			"waits for open streams at SIGTERM", "ignores SIGTERM once it is configured", "takes long to exit once it is configured", "leaves a child behind",
		},
		Sharing: {
			"locks its backend without declaring that it is exclusive", "is exclusive and leaves its lock behind", "is exclusive and leaves its lock behind when it is killed",
			"refuses a data directory that was not closed",
		},
	}
}

func subject(t *testing.T, lie string) Subject {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{Path: path, Env: []string{lieVariable + "=" + lie}, Kind: (&liar{lie: lie}).kind(), Settings: json.RawMessage(`{"url": "x"}`), Probe: getSession}
	if s.Kind == plugins.KindAuth {
		s.Probe = verifyToken
	}
	if lie == "none, with the SDK" {
		s.Settings = nil
	}
	return s
}

func getSession(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
	_, err := sessionstorev1.NewSessionStoreServiceClient(conn).Get(ctx, &sessionstorev1.GetRequest{Id: "no-session-of-anybody-" + about})
	return err
}

func verifyToken(ctx context.Context, conn grpc.ClientConnInterface, about string) error {
	_, err := authv1.NewAuthServiceClient(conn).Verify(ctx, &authv1.VerifyRequest{Token: "no-token-of-anybody-" + about})
	return err
}

func TestEachFaultyImplementationIsCaughtByItsProperty(t *testing.T) {
	t.Parallel()
	liars := plugintest.Lies[*Subject]{}
	for property, all := range lies() {
		liars[property] = map[string]func(*Subject){}
		for _, lie := range all {
			liars[property][lie] = func(s *Subject) { *s = subject(t, lie) }
		}
	}
	plugintest.Liars(t, plugintest.Time, Properties(), plugintest.Trial(kit.Quick), func(_ *testing.T, change func(*Subject)) (s Subject) { change(&s); return s }, liars)
}

func TestAReportHasTheWholeHistoryAndThePluginsLog(t *testing.T) {
	t.Parallel()
	for lie, c := range map[string]struct{ property, says string }{
		"fails without a data directory":                           {Configured, `"mkdir: no such file or directory"; it logged: configure: the directory is empty` + "\ndemanded:"},
		"locks its backend without declaring that it is exclusive": {Sharing, "   1  another process serves\n>  2  Configure with {"},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			for _, p := range Properties() {
				if p.Name != c.property {
					continue
				}
				if o := p.Judge(t.Context(), plugintest.Trial(kit.Quick), subject(t, lie)); o.Err == nil || !strings.Contains(o.Err.Error(), c.says) {
					t.Errorf("there is no %q in\n%v", c.says, o.Err)
				}
			}
		})
	}
}

func TestCorrectPluginsPass(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"none", "none, with the SDK"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			plugintest.Judge(t, Properties(), plugintest.Trial(kit.Quick), subject(t, right))
		})
	}
}

func TestEveryPropertyCitesTheContract(t *testing.T) {
	t.Parallel()
	plugintest.Sentences(t, "plugin")
}
