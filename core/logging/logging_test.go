package logging_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/logging"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestLevelsChangePerComponentWhileLoggersAreInUse(t *testing.T) {
	var out testkit.Log
	levels := logging.NewLevels(hclog.Info)
	log := logging.New(logging.Options{Levels: levels}, &out)
	calc, chat := log.Named("apps").Named("calc").With("pid", 7), log.Named("chat")
	write := func(text string) {
		calc.Debug(text + " of calc")
		chat.Debug(text + " of chat")
	}
	write("before")
	if err := levels.Change(map[string]string{"apps": "debug"}); err != nil {
		t.Fatal(err)
	}
	write("then")
	log.SetLevel(hclog.Debug) // as a reload does
	if err := levels.Change(map[string]string{"apps.calc": "error", "apps": ""}); err != nil {
		t.Fatal(err)
	}
	write("last")
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "then of calc: pid=7") || !strings.Contains(got, "last of chat") {
		t.Errorf("the log is:\n%s", got)
	}
	if calc.IsWarn() || !calc.IsError() || !chat.IsDebug() || calc.GetLevel() != hclog.Error {
		t.Errorf("calc has %v, chat %v", calc.GetLevel(), chat.GetLevel())
	}
	if got := levels.All(); len(got) != 2 || got["default"] != "debug" || got["apps.calc"] != "error" {
		t.Errorf("the levels are %v", got)
	}
}

func TestAnInvalidLevelChangesNothing(t *testing.T) {
	levels := logging.NewLevels(hclog.Info)
	log := logging.New(logging.Options{Levels: levels}, io.Discard)
	log.Named("apps")
	log.Named("chat")
	err := levels.Change(map[string]string{"apps": "debug", "chat": "loud"})
	if err == nil || !strings.Contains(err.Error(), `"chat" must be trace`) || levels.Of("apps") != hclog.Info {
		t.Errorf("%v, and apps has %v", err, levels.Of("apps"))
	}
}

func TestDurationsAreWrittenAsTextInBothFormats(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out testkit.Log
		log := logging.New(logging.Options{Levels: logging.NewLevels(hclog.Info), JSON: json}, &out)
		log.Info("request completed", "duration", 1360*time.Millisecond)
		log.With("timeout", 2*time.Second).Info("again")
		log.StandardLogger(nil).Print("from the standard library")
		if got := out.String(); !strings.Contains(got, "1.36s") || !strings.Contains(got, "2s") || !strings.Contains(got, "from the standard library") {
			t.Errorf("json %t: the log is:\n%s", json, got)
		}
	}
}

func TestALevelForAnUnknownComponentIsRejected(t *testing.T) {
	levels := logging.NewLevels(hclog.Info)
	log := logging.New(logging.Options{Levels: levels}, io.Discard)
	log.Named("apps").Named("calc")
	log.Named("chat")
	if err := levels.Change(map[string]string{"apps.later": "debug", "chat": "warn"}); err != nil {
		t.Errorf("known and possible components: %v", err)
	}
	err := levels.Change(map[string]string{"nonsense": "debug"})
	if err == nil || !strings.Contains(err.Error(), "its components are apps, chat") {
		t.Errorf("the error is %v", err)
	}
}
