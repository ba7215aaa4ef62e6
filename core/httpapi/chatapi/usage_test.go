package chatapi

import (
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestUsageIsSummedByPeriod(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("", 3600))
	for period, from := range map[string]string{
		"day": "2026-03-01T00:00:00.000Z", "week": "2026-02-23T00:00:00.000Z", "month": "2026-01-31T00:00:00.000Z", "all": "1970-01-01T00:00:00.000Z",
	} {
		begin, end, err := usageBounds(period, "", "", now)
		if err != nil || core.Timestamp(begin) != from || !end.Equal(now) {
			t.Errorf("%s is from %v to %v, %v", period, begin, end, err)
		}
	}
}

func TestAPeriodIsCountedBackwardsFromItsEnd(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct{ name, period, from, to, begin, end string }{
		{"a day that ends with a date", "day", "", "2026-01-10", "2026-01-10", "2026-01-11"},
		{"a week that ends with a time", "week", "", "2026-01-10T00:00:00Z", "2026-01-03", "2026-01-10"},
		{"today, when it has just begun", "day", "", "", "2026-02-28", "2026-03-01"},
		{"from overrides the period", "day", "2025-12-31", "2026-01-10", "2025-12-31", "2026-01-11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin, end, err := usageBounds(c.period, c.from, c.to, now)
			if err != nil || begin.Format(time.DateOnly) != c.begin || end.Format(time.DateOnly) != c.end {
				t.Errorf("from %v to %v, %v", begin, end, err)
			}
		})
	}
}
