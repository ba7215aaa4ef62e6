package registrytest_test

import (
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/registry/registrytest"
)

// trial returns a normal trial, with a shorter wait for plugins that restart immediately.
func trial() kit.Trial {
	t := plugintest.Trial(kit.Normal)
	t.Start = 3 * time.Second
	return t
}

func TestTheKitDemandsWhatTheContractSays(t *testing.T) {
	plugintest.Sentences(t, "registry", registrytest.Properties())
}

func TestARightRegistryPasses(t *testing.T) {
	plugintest.Judge(t, registrytest.Properties(), trial(), open(t, func(*plugin) {}))
}
