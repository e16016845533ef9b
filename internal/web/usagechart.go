package web

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/parley-server/parley/internal/session"
)

// The plot of a chart, in pixels from above.
const (
	plotTop    = 8.0
	plotBottom = 188.0
)

// maxSeries is the number of models with a colour of their own; the last one may be all others.
const maxSeries = 3

// usageChart shows the cost of models by hour or day, or their tokens if no price is known.
type usageChart struct {
	Tokens  bool
	Unit    string // hour or day
	Series  []usageSeries
	Columns []usageColumn
	Lines   []usageLine
}

type usageSeries struct{ Name, Class, Total string }

// usageColumn is an hour or a day.
type usageColumn struct {
	Label, Total string
	X, Width     string // in percent
	Middle       string // position of the label; "": it has none
	Parts        []usagePart
}

// usagePart is a model in a column.
type usagePart struct {
	Series    usageSeries
	Value     string
	Y, Height string
}

type usageLine struct{ Y, Label string }

// chartOf returns the chart of rows by hour or day.
func chartOf(rows []session.UsageRow, since, now time.Time, by session.UsageBy) usageChart {
	c := usageChart{Tokens: true, Unit: string(by)}
	for _, r := range rows {
		c.Tokens = c.Tokens && costOf(r) == 0
	}
	totals := make(map[string]float64)
	for _, r := range rows {
		totals[r.Name] += c.amount(r)
	}
	names := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b))
	})
	place := make(map[string]int)
	for i, name := range names {
		if place[name] = min(i, maxSeries-1); i < maxSeries {
			c.Series = append(c.Series, usageSeries{Name: cmp.Or(maskText(name), "unknown model"), Class: fmt.Sprintf("c%d", i+1),
				Total: c.text(totals[name])})
			continue
		}
		totals[names[maxSeries-1]] += totals[name]
		c.Series[maxSeries-1].Name, c.Series[maxSeries-1].Total = "other models", c.text(totals[names[maxSeries-1]])
	}
	c.addColumns(rows, place, since, now)
	return c
}

func (c *usageChart) amount(r session.UsageRow) float64 {
	if c.Tokens {
		return float64(r.InputTokens + r.OutputTokens)
	}
	return costOf(r)
}

func (c *usageChart) text(amount float64) string {
	if c.Tokens {
		return num(int64(amount))
	}
	return money(amount, 2)
}

// addColumns adds a column for each hour or day, stacked from below.
func (c *usageChart) addColumns(rows []session.UsageRow, place map[string]int, since, now time.Time) {
	step, count := 24*time.Hour, int(now.Sub(since)/(24*time.Hour))+1
	if c.Unit == string(session.ByHour) {
		step, count = time.Hour, 24
	}
	amounts, highest := make([][maxSeries]float64, count), 0.0
	for _, r := range rows {
		if i := int(r.At.Sub(since) / step); i >= 0 && i < count {
			amounts[i][place[r.Name]] += c.amount(r)
		}
	}
	for _, parts := range amounts {
		highest = max(highest, parts[0]+parts[1]+parts[2])
	}
	top := roundUp(highest)
	for i := range 5 {
		part := float64(i) / 4
		c.Lines = append(c.Lines, usageLine{fmt.Sprintf("%.1f", plotBottom-part*(plotBottom-plotTop)), shortAmount(top*part, top)})
	}
	for i, parts := range amounts {
		at := since.Add(time.Duration(i) * step)
		col := usageColumn{Label: at.Format("2 Jan"), X: fmt.Sprintf("%.2f%%", (float64(i)+.12)/float64(count)*100),
			Width: fmt.Sprintf("%.2f%%", .76/float64(count)*100)}
		if step == time.Hour {
			col.Label = at.Format("15:04")
		}
		if every := max(1, count/6); i%every == every/2 {
			col.Middle = fmt.Sprintf("%.2f%%", (float64(i)+.5)/float64(count)*100)
		}
		sum := 0.0
		for n, series := range c.Series {
			height := parts[n] / top * (plotBottom - plotTop)
			y := plotBottom - (sum+parts[n])/top*(plotBottom-plotTop)
			col.Parts = append(col.Parts, usagePart{Series: series, Value: c.text(parts[n]), Y: fmt.Sprintf("%.1f", y),
				Height: fmt.Sprintf("%.1f", height)})
			sum += parts[n]
		}
		col.Total = c.text(sum)
		c.Columns = append(c.Columns, col)
	}
}

// roundUp returns the next number that can be halved twice: 1, 2, 4 or 8, and zeros.
func roundUp(n float64) float64 {
	if n <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(n)))
	for _, m := range []float64{1, 2, 4, 8} {
		if n <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}

// shortAmount renders a mark of an axis that ends at top.
func shortAmount(n, top float64) string {
	switch {
	case n == 0:
		return "0"
	case top >= 4e6:
		return fmt.Sprintf("%gM", n/1e6)
	case top >= 4e3:
		return fmt.Sprintf("%gk", n/1e3)
	}
	return fmt.Sprintf("%.4g", n)
}
