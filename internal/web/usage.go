package web

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
)

const (
	usageRows    = 10_000 // of a download
	usageCallers = 20     // of a table by agent, key or user
	firstTexts   = 500    // turns whose first text is measured
)

// usagePeriod is a range of the page.
type usagePeriod struct {
	Value, Label string
	Days         int // 0: today, by hour
}

var usagePeriods = []usagePeriod{{"today", "Today", 0}, {"7", "7 d", 7}, {"30", "30 d", 30}, {"90", "90 d", 90}}

// usageView is what the agents of a workspace have used.
type usageView struct {
	Periods []usagePeriod
	Period  usagePeriod
	Total   session.UsageRow
	First   session.FirstText
	Chart   usageChart
	Agents  []session.UsageRow
	Keys    []session.UsageRow
	Users   []session.UsageRow
}

func (a *App) usagePage(w http.ResponseWriter, p *page) error {
	q, view := p.URL.Query(), usageView{Periods: usagePeriods, Period: usagePeriods[2]}
	for _, choice := range usagePeriods {
		if choice.Value == q.Get("period") {
			view.Period = choice
		}
	}
	now := time.Now().UTC()
	since, unit := now.Truncate(24*time.Hour), session.ByHour
	if view.Period.Days > 0 {
		since, unit = since.AddDate(0, 0, 1-view.Period.Days), session.ByDay
	}
	if q.Get("format") == "csv" {
		return a.exportUsage(w, p, since, unit, session.UsageBy(q.Get("by")))
	}
	used, err := a.srv.Sessions.Usage(p.Context(), p.Workspace.ID, since, unit, usageCallers)
	if err != nil {
		return err
	}
	if view.First, err = a.srv.Sessions.FirstText(p.Context(), p.Workspace.ID, since, firstTexts); err != nil {
		return err
	}
	view.Agents, view.Keys, view.Users = used.Agents, used.Keys, used.Users
	names := newAsker(p)
	for i := range view.Keys {
		if view.Keys[i].Name, err = names.name(p.Context(), view.Keys[i].Name); err != nil {
			return err
		}
	}
	for _, r := range used.Times {
		view.Total.Turns += r.Turns
		view.Total.Completed += r.Completed
		view.Total.InputTokens += r.InputTokens
		view.Total.OutputTokens += r.OutputTokens
		if r.CostUSD != nil {
			view.Total.CostUSD = new(*r.CostUSD + costOf(view.Total))
		}
	}
	view.Chart = chartOf(used.Times, since, now, unit)
	return a.render(w, p, "usage", view)
}

func costOf(r session.UsageRow) float64 {
	if r.CostUSD == nil {
		return 0
	}
	return *r.CostUSD
}

// CSV is the address of a table.
func (v usageView) CSV(by string) string {
	return "?period=" + v.Period.Value + "&by=" + by + "&format=csv"
}

// Share is the percentage of turns that were completed.
func (v usageView) Share() string {
	return strconv.FormatFloat(100*float64(v.Total.Completed)/float64(max(1, v.Total.Turns)), 'f', 1, 64)
}

// PerTurn is the number of output tokens of a turn.
func (v usageView) PerTurn() int64 { return v.Total.OutputTokens / max(1, v.Total.Turns) }

// exportUsage sends a list of the usage as a table. by is "" for the times.
func (a *App) exportUsage(w http.ResponseWriter, p *page, since time.Time, unit, by session.UsageBy) error {
	used, err := a.srv.Sessions.Usage(p.Context(), p.Workspace.ID, since, unit, usageRows)
	if err != nil {
		return err
	}
	rows, first := used.Times, []string{string(unit), "model"}
	switch by {
	case "":
		by = unit
	case session.ByAgent:
		rows, first = used.Agents, []string{"agent"}
	case session.ByKey:
		rows, first = used.Keys, []string{"key"}
	case session.ByUser:
		rows, first = used.Users, []string{"user"}
	default:
		return fault.New(fault.InvalidRequestBody, "Usage can be exported by agent, key or user, or by day and model.")
	}
	var out bytes.Buffer
	table := csv.NewWriter(&out)
	_ = table.Write(append(first, "turns", "completed", "input_tokens", "output_tokens", "cost_usd"))
	for _, r := range rows {
		line := []string{cell(&r.Name)}
		if by == unit {
			line = []string{r.At.UTC().Format(time.RFC3339), cell(&r.Name)}
		}
		cost := ""
		if r.CostUSD != nil {
			cost = strconv.FormatFloat(*r.CostUSD, 'f', -1, 64)
		}
		_ = table.Write(append(line, strconv.FormatInt(r.Turns, 10), strconv.FormatInt(r.Completed, 10),
			strconv.FormatInt(r.InputTokens, 10), strconv.FormatInt(r.OutputTokens, 10), cost))
	}
	table.Flush()
	return sendFile(w, p, "usage-"+p.Workspace.Slug+"-"+string(by)+".csv", "text/csv; charset=utf-8", out.Bytes())
}
