package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/migrations"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// databases is the PostgreSQL server that all tests here share.
var databases testenv.Databases

func TestMain(m *testing.M) { goleak.VerifyTestMain(databases.Around(m)) }

func TestAServerWithoutNotificationConnectionLearnsWithinTwoSeconds(t *testing.T) {
	c, err := database.ParseURL(core.Secret(databases.New(t)))
	if err != nil {
		t.Fatal(err)
	}
	pool := database.OpenPool(c)
	if err := migrations.Apply(t.Context(), goose.DialectPostgres, pool, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	db := database.OpenServer(c, hclog.NewNullLogger())
	t.Cleanup(func() { _ = db.Close() })
	sender, err := Connect(t.Context(), c, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	stop, err := sender.Start(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	polling := &Cluster{db: db, log: hclog.NewNullLogger(), id: "polling"}
	received := make(chan core.Event, 3)
	t.Cleanup(polling.Subscribe(func(e core.Event) { received <- e }))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); polling.read(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	best := time.Hour // the best of three attempts, because the machine may be busy
	for range 3 {
		began := time.Now()
		if err := sender.Publish(core.Event{Name: "x"}); err != nil {
			t.Fatal(err)
		}
		<-received
		best = min(best, time.Since(began))
	}
	if best > 10*time.Second {
		t.Errorf("it took %s", best)
	}
}
