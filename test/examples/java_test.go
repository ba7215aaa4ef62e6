package examples

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// needJava fails the test if the tools to build plugins in Java are missing.
func needJava(t *testing.T) {
	t.Helper()
	for _, program := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("this test needs %s: install the Debian packages default-jdk-headless and maven, or a JDK 17 and Maven 3.8 or newer", program)
		}
	}
}

// sessionStoreJava builds the example and returns its executable.
func sessionStoreJava(t *testing.T) string {
	t.Helper()
	needJava(t)
	return filepath.Join(install(t, "sessionstore-java", "target", "pom.xml", "src"), "sessionstore-java")
}

func TestTheSessionStoreInJavaKeepsTheContract(t *testing.T) {
	t.Parallel()
	h, log := newHost(t)
	store, err := h.SessionStore(t.Context(), plugin(t, sessionStoreJava(t), `{}`))
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	defer store.Close(context.Background())
	plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), sessionstoretest.Subject{Store: store})
}

func TestTheSessionStoreInJavaReportsInvalidSettings(t *testing.T) {
	t.Parallel()
	wantProblems(t, plugins.KindSessionStore, sessionStoreJava(t), `{"directory": "/tmp", "url": 5}`,
		"directory: is not a setting",
		"url: is not a setting",
	)
}

func TestTheSessionStoreInJavaServesOnlyItsServer(t *testing.T) {
	t.Parallel()
	servesOnlyItsServer(t, plugins.KindSessionStore, sessionStoreJava(t))
}
