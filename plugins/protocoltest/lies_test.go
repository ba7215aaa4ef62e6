package protocoltest_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	authv1 "github.com/ropewalk/ropewalk/proto/ropewalk/auth/v1"
	sessionstorev1 "github.com/ropewalk/ropewalk/proto/ropewalk/sessionstore/v1"
)

// lieVariable makes the test binary a plugin that tells that lie.
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

// lies are what a plugin may do wrong, and the check that must catch it.
func lies() map[string]string {
	const byHand, otherKind = "started by hand it says what it is and exits with status 1", "started as another kind it says so and exits with status 1"
	const leaks = "10,000 calls leave no descriptor open, no memory in use and nothing on standard output"
	all := servingLies()
	maps.Copy(all, map[string]string{
		"serves without the cookie":                     byHand,
		"exits with status 0":                           byHand,
		"says on standard output what it is":            byHand,
		"does not say what it is":                       byHand,
		"serves whatever kind is wanted":                otherKind,
		"speaks netrpc by its handshake line":           "the handshake line is as documented",
		"answers with a version that it does not serve": "it answers with the highest protocol version that both speak",
		"listens on every address":                      "it listens on this machine only",
		"wants no certificate":                          "it serves nobody without a certificate",
		"takes any certificate":                         "it serves nobody with another certificate",
		"serves in plain text":                          "it serves nobody in plain text",
		"has no health service":                         "its health service answers SERVING",
		"is not healthy":                                "its health service answers SERVING",
		"counts its Infos":                              "Info answers before Configure, always the same",
		"is of another kind by its Info":                "Info names the kind it was started as, a name and a version",
		"has a name in capitals":                        "Info names the kind it was started as, a name and a version",
		"has no version":                                "Info names the kind it was started as, a name and a version",
		"refuses good settings":                         "Configure accepts good settings",
		"configures with settings that do not exist":    "Configure reports settings that do not exist, each with its path",
		"reports problems without a path":               "Configure reports settings that do not exist, each with its path",
		"reports one problem at a time":                 "Configure reports settings that do not exist, each with its path",
		"fails where it should report problems":         "Configure reports settings that do not exist, each with its path",
		"validates settings that do not exist":          "Validate reports settings that do not exist, each with its path",
		"configures with values of the wrong type":      "Configure reports values of the wrong type with their path",
		"validates values of the wrong type":            "Validate reports values of the wrong type with their path",
		"accepts settings that are not an object":       "settings that are no object are a problem",
		"finds fault in good settings":                  "Validate accepts good settings",
		"says that it validates and does not":           "Validate is there exactly when Info says so",
		"does not say that it validates":                "Validate is there exactly when Info says so",
		"takes settings once only":                      "after settings that were refused Configure accepts good ones",
		"repeats values in problems":                    "no problem, error or log line repeats a value of the settings",
		"logs its settings":                             "no problem, error or log line repeats a value of the settings",
		"logs its settings in hex":                      "no problem, error or log line repeats a value of the settings",
		"takes 4 MiB in at most":                        "a message of 15 MiB is taken in",
		"answers one call at a time":                    "100 calls at once are all answered",
		"keeps a descriptor of each fiftieth call":      leaks,
		"keeps 20 KB of each call":                      leaks,
		locksUnsaid:                                     "a process can be configured while another one serves, unless the plugin is exclusive",
		locksForGood:                                    "an exclusive plugin frees its backend when Shutdown ends it",
		locksKilled:                                     "an exclusive plugin frees its backend when kill -9 ends it",
		"does not obey Shutdown":                        "Shutdown ends the process and leaves nothing behind",
		"leaves its socket behind":                      "Shutdown ends the process and leaves nothing behind",
		"does not obey SIGTERM":                         "SIGTERM ends the process",
		"prints as it configures":                       "standard output carries the handshake line alone",
		"prints as it ends":                             "standard output carries the handshake line alone",
		"takes a list of objects for a text":            "Configure reports values of the wrong type with their path",
		"takes null for an object":                      "settings that are no object are a problem",
		"keeps 20 KB of each call of its kind":          leaks,
		"prints at each thousandth call":                leaks,
		"takes its time to end":                         "Shutdown ends the process and leaves nothing behind",
	})
	return all
}

// servingLies are what a plugin may do wrong as it validates and once it serves.
func servingLies() map[string]string {
	const healthy, alone = "its health service answers SERVING while it serves", "it listens on nothing beside the address of its handshake line"
	const silent = "standard output carries nothing while the plugin serves, nor a while after"
	const news, writes = "Configure ignores a version and capabilities of the server that it does not know", "Validate writes nothing"
	const nearest, watched = "a problem names the nearest setting for an unknown one alone", "SIGTERM ends a plugin that serves and whose health is watched"
	const repeats, token = "no problem of Validate and no log line after it repeats a value of the settings", "no error or log line repeats a token"
	return map[string]string{
		"begins its problems with a capital":                   "a problem says in lower case what is wrong",
		"says nothing of its problems":                         "a problem says in lower case what is wrong",
		"names an unknown setting as the nearest":              nearest,
		"names a nearest setting for a wrong type":             nearest,
		"fails without a data directory":                       "Configure without a data directory answers with problems or none",
		"has no words for its errors":                          "an error says what was wrong",
		"waits for open streams at Shutdown":                   "Shutdown ends a plugin whose health is watched",
		"waits for open streams at SIGTERM":                    watched,
		"does not obey SIGTERM once it is configured":          watched,
		"is not healthy once it is configured":                 healthy,
		"is not healthy once it was called":                    healthy,
		"fails calls of its kind with a code of its own":       healthy,
		"listens on every address besides":                     alone,
		"listens on every address once it is configured":       alone,
		"takes datagrams on every address":                     alone,
		"takes datagrams on this machine by IPv6":              alone,
		"has a page about itself on this machine":              alone,
		"prints a second after it is configured":               silent,
		"prints at the fifth call of its kind":                 silent,
		"prints two seconds after a call":                      silent,
		"has the same key at each start":                       "each start has a key of its own",
		"refuses capabilities that it does not know":           news,
		"refuses servers that are newer":                       news,
		"reports wrong types before names that do not exist":   "Configure reports problems of every kind at once",
		"validates wrong types before names that do not exist": "Validate reports problems of every kind at once",
		"validates settings that are not an object":            "Validate reports settings that are no object",
		"makes the data directory as it validates":             writes,
		"tries the data directory by writing as it validates":  writes,
		"takes the settings that it validates":                 "Validate changes nothing of a plugin that serves",
		"repeats values in problems of Validate":               repeats,
		"logs the settings that it validates":                  repeats,
		refusesCrowd:                                           "100 calls of the kind's own service at once are answered as one alone is",
		keepsWorker:                                            "calls that were given up use nothing up",
		logsToken:                                              token,
		encodesToken:                                           token,
		repeatsToken:                                           token,
		refusesDirectory:                                       "a new process takes the data directory that a killed one left",
		"takes its time to end once it is configured":          "Shutdown ends a plugin that serves within two seconds",
	}
}

func subject(t *testing.T, lie string) protocoltest.Subject {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := protocoltest.Subject{Path: path, Env: []string{lieVariable + "=" + lie}, Kind: plugins.KindSessionStore, Settings: json.RawMessage(`{"url": "x"}`), Probe: getSession}
	if lie == logsToken || lie == repeatsToken || lie == encodesToken {
		s.Kind, s.Probe = plugins.KindAuth, verifyToken
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

func TestEachLieIsCaughtByItsCheck(t *testing.T) {
	for lie, name := range lies() {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			check := slices.DeleteFunc(protocoltest.Checks(), func(c protocoltest.Check) bool { return c.Name != name })
			if failed := kit.Failed(kit.Run(t.Context(), check, subject(t, lie))); len(failed) != 1 {
				t.Errorf("not caught by the check %q", name)
			}
		})
	}
}

func TestHonestPluginsAreNotCaught(t *testing.T) {
	for _, honest := range []string{"none", "none, with the SDK"} {
		t.Run(honest, func(t *testing.T) {
			plugintest.Run(t, protocoltest.Checks(), subject(t, honest))
		})
	}
}

func TestEveryCheckHasALieAndIsAPromiseOfTheContract(t *testing.T) {
	var proven []string
	for _, name := range lies() {
		proven = append(proven, name)
	}
	for _, check := range protocoltest.Checks() {
		if !slices.Contains(proven, check.Name) {
			t.Errorf("no lie proves the check %q", check.Name)
		}
	}
	plugintest.InContract(t, "plugin", protocoltest.Checks())
}
