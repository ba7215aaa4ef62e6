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
			"serves without the cookie", "exits with status 0", "says on standard output what it is", "does not say what it is", "serves whatever kind is wanted",
		},
		Handshake: {
			"speaks netrpc by its handshake line", "answers with a version that it does not serve", "listens on every address", "serves in plain text",
			"listens on every address besides", "listens on every address once it is configured", "takes datagrams on every address", "takes datagrams on this machine by IPv6",
			"has a page about itself on this machine", "has the same key at each start",
		},
		Guarded: {"wants no certificate", "takes any certificate"},
		Introduced: {
			"has no health service", "is not healthy", "counts its Infos", "is of another kind by its Info", "has a name in capitals", "has no version",
			"is not healthy once it is configured", "is not healthy once it was called", "fails calls of its kind with a code of its own", "has no words for its errors",
		},
		Configured: {
			"refuses good settings", "configures with settings that do not exist", "reports problems without a path", "reports one problem at a time",
			"fails where it should report problems", "configures with values of the wrong type", "takes names of settings without their case", "accepts settings that are not an object", "takes settings once only",
			"takes a list of objects for a text", "takes null for an object", "begins its problems with a capital", "says nothing of its problems",
			"names an unknown setting as the nearest", "names a nearest setting for a wrong type", "fails without a data directory", "uses the current directory without a data directory",
			"refuses capabilities that it does not know", "refuses servers that are newer", "reports wrong types before names that do not exist",
		},
		Validated: {
			"validates settings that do not exist", "validates values of the wrong type", "finds fault in good settings", "says that it validates and does not",
			"does not say that it validates", "validates wrong types before names that do not exist", "validates settings that are not an object",
			"makes the data directory as it validates", "tries the data directory by writing as it validates", "takes the settings that it validates",
		},
		Secretive: {
			"repeats values in problems", "logs its settings", "logs its settings in hex", "repeats values in problems of Validate", "logs the settings that it validates",
			"logs the tokens that it refuses", "logs the tokens that it refuses in base64", "repeats tokens in errors", "gives its settings to a child as an argument", "writes its settings where everybody reads them",
		},
		Loaded: {"takes 4 MiB in at most", "answers RESOURCE_EXHAUSTED to more than 50 calls at once", "keeps a worker for each abandoned call", "ends when it cannot read a message", "prints which methods it does not know"},
		Steady: {"keeps 200 KB of each abandoned call", "keeps 200 KB of each check of its health", "keeps a descriptor of each thirtieth call", "keeps 20 KB of each call", "keeps 20 KB of each call of its kind", "starts a child at each hundredth call", "writes a file at each call"},
		Silent: {
			"prints as it configures", "prints as it ends", "prints at each hundredth call of its kind", "prints a second after it is configured", "prints at the fifth call of its kind",
			"prints two seconds after a call",
		},
		Ending: {
			"does not obey Shutdown", "leaves its socket behind", "does not obey SIGTERM", "takes its time to end", "waits for open streams at Shutdown",
			"waits for open streams at SIGTERM", "does not obey SIGTERM once it is configured", "takes its time to end once it is configured", "leaves a child behind",
		},
		Sharing: {
			"locks its backend and does not say that it is exclusive", "is exclusive and leaves its lock behind", "is exclusive and leaves its lock behind when it is killed",
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

func TestEachFaultyImplementationIsCaughtByAPropertyThatCatchesOthersToo(t *testing.T) {
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

func TestAReportHasTheWholeHistoryAndWhatThePluginLogged(t *testing.T) {
	t.Parallel()
	for lie, c := range map[string]struct{ property, says string }{
		"fails without a data directory":                          {Configured, "desc = mkdir: no such file or directory; it logged: configure: the directory is empty\ndemanded:"},
		"locks its backend and does not say that it is exclusive": {Sharing, "   1  another process serves\n   2  Configure with {"},
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
