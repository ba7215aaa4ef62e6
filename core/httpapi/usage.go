package httpapi

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

type usagePeriod struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type usageResponse struct {
	Period    usagePeriod       `json:"period"`
	Totals    core.UsageTotals  `json:"totals"`
	Models    []core.ModelUsage `json:"models"`
	Breakdown []core.GroupUsage `json:"breakdown"`
}

// getUsage is GET /v1/usage: of the whole workspace for its admins, of the caller for others.
func (s *Server) getUsage(c *fiber.Ctx, caller core.Caller) error {
	q := core.UsageQuery{GroupBy: core.UsageGroup(c.Query("groupBy", string(core.UsageByDay)))}
	if !slices.Contains([]core.UsageGroup{core.UsageByDay, core.UsageByModel, core.UsageByConversation, core.UsageByUser}, q.GroupBy) {
		return core.Errorf(core.CodeBadRequest, "groupBy can be day, model, conversation or user")
	}
	var err error
	if q.From, q.To, err = usageBounds(c.Query("period", "month"), c.Query("from"), c.Query("to"), time.Now()); err != nil {
		return err
	}
	report, err := s.chat.Usage(c.UserContext(), caller, q)
	if err != nil {
		return err
	}
	return c.JSON(usageResponse{
		Period: usagePeriod{From: core.Timestamp(q.From), To: core.Timestamp(q.To)},
		Totals: report.Totals, Models: orEmpty(report.Models), Breakdown: orEmpty(report.Breakdown),
	})
}

// usageBounds is the time span of a report. It ends now, or with to, and begins with a day
// (UTC): the last one, 6 days before it, 29 days before it, or the beginning of time. from goes before
// the period; a date alone means the whole of that day.
func usageBounds(period, from, to string, now time.Time) (begin, end time.Time, err error) {
	end = now.UTC()
	if to != "" {
		var day bool
		if end, day, err = moment("to", to); err != nil {
			return begin, end, err
		}
		if day {
			end = end.AddDate(0, 0, 1)
		}
	}
	last := end.Add(-1).Truncate(24 * time.Hour)
	switch period {
	case "day":
		begin = last
	case "week":
		begin = last.AddDate(0, 0, -6)
	case "month":
		begin = last.AddDate(0, 0, -29)
	case "all":
		begin = time.Unix(0, 0).UTC()
	default:
		return begin, end, core.Errorf(core.CodeBadRequest, "period can be day, week, month or all")
	}
	if from != "" {
		if begin, _, err = moment("from", from); err != nil {
			return begin, end, err
		}
	}
	if !begin.Before(end) {
		return begin, end, core.Errorf(core.CodeBadRequest, "from must be before to")
	}
	return begin, end, nil
}

// moment parses an RFC 3339 time or a date.
func moment(name, text string) (at time.Time, day bool, err error) {
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		return at, true, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return at, false, core.Errorf(core.CodeBadRequest, "%s must be a date such as 2026-11-20, or a time such as 2026-11-20T08:00:00Z", name)
	}
	return at.UTC(), false, nil
}
