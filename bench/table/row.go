package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Row is one figure.
type Row struct {
	Figure  string  `json:"figure"`
	Must    float64 `json:"must"`
	Less    bool    `json:"less"` // Must is an upper limit
	Unit    string  `json:"unit"` // "" if the figure is a ratio
	Reached float64 `json:"reached"`
	Ours    string  `json:"ours"`             // the absolute figure of the service
	Theirs  string  `json:"theirs,omitempty"` // the absolute figure of the rival
	NoGoal  bool    `json:"noGoal,omitempty"` // no goal: Ours contains the whole result
}

// Good reports whether the row meets its goal.
func (r Row) Good() bool {
	if r.NoGoal {
		return true
	}
	if r.Less {
		return r.Reached <= r.Must
	}
	return r.Reached >= r.Must
}

// Print writes the rows as a table.
func Print(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "FIGURE\tGOAL\tACTUAL\t\tROPEWALK\tRIVAL") // tabwriter returns the error from Flush
	for _, r := range rows {
		if r.NoGoal {
			_, _ = fmt.Fprintf(w, "%s\t-\t-\t\t%s\t%s\n", r.Figure, r.Ours, r.Theirs)
			continue
		}
		sign, verdict := ">=", "ok"
		if r.Less {
			sign = "<="
		}
		if !r.Good() {
			verdict = "MISSED"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t%s\t%s\n", r.Figure, sign, number(r.Must, r.Unit), number(r.Reached, r.Unit), verdict, r.Ours, r.Theirs)
	}
	return w.Flush()
}

func number(n float64, unit string) string {
	if unit == "" {
		return fmt.Sprintf("%.2f", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") + " " + unit
}

// compareRates adds a row with a ratio of requests per second, which must be at least must.
func (b *bench) compareRates(figure string, must float64, ours, theirs []sample) {
	b.rows = append(b.rows, Row{
		Figure: figure, Must: must, Reached: ratio(ours, theirs, sample.rate),
		Ours: fmt.Sprintf("%.0f/s", medianOf(ours, sample.rate)), Theirs: fmt.Sprintf("%.0f/s", medianOf(theirs, sample.rate)),
	})
}

// compareCPU adds a row with a ratio of CPU times, which must be at most must.
func (b *bench) compareCPU(figure string, must float64, ours, theirs []sample) {
	b.rows = append(b.rows, Row{
		Figure: figure, Must: must, Less: true, Reached: ratio(ours, theirs, sample.cost),
		Ours: fmt.Sprintf("%.1f us", medianOf(ours, sample.cost)), Theirs: fmt.Sprintf("%.1f us", medianOf(theirs, sample.cost)),
	})
}

// compareDurations adds a row with a ratio of durations, which must be at most must.
func (b *bench) compareDurations(figure string, must float64, ours, theirs []sample, of func(sample) float64) {
	b.rows = append(b.rows, Row{
		Figure: figure, Must: must, Less: true, Reached: ratio(ours, theirs, of),
		Ours: fmt.Sprintf("%.2f ms", medianOf(ours, of)), Theirs: fmt.Sprintf("%.2f ms", medianOf(theirs, of)),
	})
}

// limit adds a row with a figure of the service alone.
func (b *bench) limit(figure string, must float64, unit string, reached float64, ours, theirs string) {
	b.rows = append(b.rows, Row{Figure: figure, Must: must, Less: true, Unit: unit, Reached: reached, Ours: ours, Theirs: theirs})
}

// statement adds a row without a goal.
func (b *bench) statement(figure, ours, theirs string) {
	b.rows = append(b.rows, Row{Figure: figure, NoGoal: true, Ours: ours, Theirs: theirs})
}

// addSkipped adds a row that explains why there are no figures.
func (b *bench) addSkipped(figure string, why error) { b.statement(figure, why.Error(), "") }
