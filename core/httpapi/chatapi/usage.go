package chatapi

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
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

// GetUsage handles GET /v1/usage: usage of the whole workspace for its admins, and of the caller for everyone else.
func (h *Handlers) GetUsage(c *fiber.Ctx, caller core.Caller) (any, error) {
	q := core.UsageQuery{GroupBy: core.UsageGroup(c.Query("groupBy", string(core.UsageByDay)))}
	if !slices.Contains([]core.UsageGroup{core.UsageByDay, core.UsageByModel, core.UsageByConversation, core.UsageByUser}, q.GroupBy) {
		return nil, core.Errorf(core.CodeBadRequest, "groupBy must be day, model, conversation or user")
	}
	var err error
	if q.From, q.To, err = usageBounds(c.Query("period", "month"), c.Query("from"), c.Query("to"), time.Now()); err != nil {
		return nil, err
	}
	report, err := h.Chat.Usage(c.UserContext(), caller, q)
	if err != nil {
		return nil, err
	}
	return usageResponse{
		Period: usagePeriod{From: core.Timestamp(q.From), To: core.Timestamp(q.To)},
		Totals: report.Totals, Models: httpio.OrEmpty(report.Models), Breakdown: httpio.OrEmpty(report.Breakdown),
	}, nil
}

// usageBounds returns the time span of a report. The span ends at to, or now if to is empty. It starts at midnight
// (UTC) of its last day, 6 or 29 days earlier, or at the Unix epoch, depending on the period. from overrides this
// start. If to is a date without a time, the span includes that whole day.
func usageBounds(period, from, to string, now time.Time) (begin, end time.Time, err error) {
	end = now.UTC()
	if to != "" {
		var day bool
		if end, day, err = httpio.ParseTime("to", to); err != nil {
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
		return begin, end, core.Errorf(core.CodeBadRequest, "period must be day, week, month or all")
	}
	if from != "" {
		if begin, _, err = httpio.ParseTime("from", from); err != nil {
			return begin, end, err
		}
		if epoch := time.Unix(0, 0).UTC(); begin.Before(epoch) {
			begin = epoch
		}
	}
	if !begin.Before(end) {
		return begin, end, core.Errorf(core.CodeBadRequest, "from must be before to")
	}
	return begin, end, nil
}

// ListSkills handles GET /v1/skills.
func (h *Handlers) ListSkills(_ *fiber.Ctx, caller core.Caller) (any, error) {
	return fiber.Map{"skills": httpio.OrEmpty(h.Chat.Skills(caller))}, nil
}
