package web

import (
	"testing"
	"time"

	"github.com/parley-server/parley/internal/session"
)

// TestUsageChart stacks the cost of four models: the two dearest have a series, the others share one.
func TestUsageChart(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 17, 0, 0, 0, 0, time.UTC)
	row := func(day int, model string, usd float64) session.UsageRow {
		return session.UsageRow{At: since.AddDate(0, 0, day), Name: model, Turns: 1, InputTokens: 100, CostUSD: &usd}
	}
	c := chartOf([]session.UsageRow{row(0, "a", 1), row(0, "b", 2), row(0, "c", 0.25), row(0, "d", 0.75), row(6, "b", 3)},
		since, since.AddDate(0, 0, 6).Add(9*time.Hour), session.ByDay)
	if c.Tokens || len(c.Columns) != 7 || len(c.Series) != 3 || c.Lines[4].Label != "4" {
		t.Fatalf("%+v", c)
	}
	if s := c.Series; s[0].Name != "b" || s[0].Total != "5.00" || s[1].Name != "a" || s[2].Name != "other models" || s[2].Total != "1.00" {
		t.Errorf("the series are %+v", s)
	}
	first := c.Columns[0]
	if first.Label != "17 Nov" || first.Total != "4.00" || first.Parts[0].Y != "98.0" || first.Parts[1].Y != "53.0" ||
		first.Parts[2].Y != "8.0" || first.Parts[2].Height != "45.0" {
		t.Errorf("the first column is %+v", first)
	}
	if last := c.Columns[6]; last.Total != "3.00" || last.Parts[0].Height != "135.0" || last.Parts[1].Height != "0.0" {
		t.Errorf("the last column is %+v", last)
	}
}
