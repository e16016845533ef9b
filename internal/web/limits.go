package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
)

// limitRow is a limit with its present use and what enforces it.
type limitRow struct {
	Name, Hint  string
	Use, Most   string // "" without a use or without a limit
	Who         string // the key or member whose use it is
	Share       int    // percent that is used; -1: unknown or unlimited
	Enforcement string
}

// limitsView is the page of limits and budgets.
type limitsView struct {
	Limits []limitRow
	Turn   []limitRow // of each turn of the default agent
	Form   *form
	// Limits of each key: of the server, and with those of the workspace.
	Default, Own ratelimit.Limits
	budgetsView
}

func (a *App) limitsPage(w http.ResponseWriter, p *page) error {
	return a.showLimits(w, p, http.StatusOK, limitsView{})
}

// showLimits renders the page. A form of view that was not accepted stays as it is.
func (a *App) showLimits(w http.ResponseWriter, p *page, status int, view limitsView) error {
	if a.srv.Limits != nil {
		view.Default = a.srv.Limits.Limits()
	}
	view.Own = a.srv.KeyLimits(p.Workspace)
	if err := a.readLimits(p, &view); err != nil {
		return err
	}
	if err := a.readBudgets(p, &view.budgetsView); err != nil {
		return err
	}
	if view.Form == nil {
		view.Form = limitsForm(p.Workspace)
	}
	return a.renderStatus(w, p, status, "limits", view)
}

// ServerLimit describes a limit that the workspace does not set.
func (limitsView) ServerLimit(n int) string {
	if n == 0 {
		return "The server's own: no limit"
	}
	return "The server's own: " + num(n)
}

// readLimits reads the limits of the workspace with their use, and those of the default agent's
// turns.
func (a *App) readLimits(p *page, view *limitsView) error {
	ctx, ws := p.Context(), p.Workspace
	turns, err := a.srv.Sessions.OpenTurns(ctx, ws.ID)
	if err != nil {
		return err
	}
	stored, err := a.srv.Workspaces.Storage(ctx)
	if err != nil {
		return err
	}
	documents, size, err := a.Wiki.Measure(ctx, ws.ID)
	if err != nil {
		return err
	}
	view.Limits = []limitRow{
		measured("Turns at once", turnsHint(turns), int64(turns.Running), int64(ws.MaxRunning), countText,
			"A further message waits in the queue"),
	}
	if err := a.readKeyUse(p, view); err != nil {
		return err
	}
	used := stored[ws.ID]
	view.Limits = append(view.Limits,
		measured("Storage", fmt.Sprintf("%s in files, %s in folders of sessions, %s in documents", sizeText(used.Files),
			sizeText(used.Folders), sizeText(used.Documents)),
			used.Used(), ws.StorageQuota, sizeText, "PostgreSQL rejects the write that would exceed it"),
		measured("Documents", "Wiki pages and other files of the knowledge", int64(documents), wiki.MaxDocuments, countText,
			"Fixed: a further document is rejected"),
		measured("Documents, size", "Bytes of their texts", size, wiki.MaxTotal, sizeText, "Fixed: a larger document is rejected"),
	)
	return a.readTurnLimits(p, view)
}

// turnsHint describes the turns that do not run.
func turnsHint(t session.OpenTurns) string {
	return fmt.Sprintf("%d waiting for an answer, %d queued, %d behind their session's turn", t.Waiting, t.Queued, t.LinedUp)
}

// measured returns the row of a limit; most 0 is none.
func measured(name, hint string, use, most int64, text func(int64) string, enforcement string) limitRow {
	row := limitRow{Name: name, Hint: hint, Use: text(use), Share: -1, Enforcement: enforcement}
	if most > 0 {
		row.Most, row.Share = text(most), int(min(100, 100*use/most))
	}
	return row
}

func countText(n int64) string { return num(n) }

// readKeyUse adds the limits of each key, with the use of the busiest key or member.
func (a *App) readKeyUse(p *page, view *limitsView) error {
	if a.srv.Limits == nil {
		return nil
	}
	keys, err := a.srv.Keys.List(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	members, err := a.accounts.Members(p.Context(), p.Workspace.ID)
	if err != nil {
		return err
	}
	var ids []string
	for _, k := range keys {
		if k.RevokedAt == nil {
			ids = append(ids, k.ID)
		}
	}
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	uses, err := a.srv.Limits.Uses(p.Context(), ids, view.Own)
	if err != nil {
		return err
	}
	names := newAsker(p)
	for _, limit := range []struct {
		name, hint, enforcement string
		most                    int
		of                      func(ratelimit.KeyUse) int
	}{
		{"Messages of a key, per minute", "The busiest key or member now", "The API answers 429 RATE_LIMITED with Retry-After",
			view.Own.Messages, func(u ratelimit.KeyUse) int {
				return u.Messages
			}},
		{"Other calls of a key, per minute", "The busiest key or member now", "The API answers 429 RATE_LIMITED with Retry-After",
			view.Own.Calls, func(u ratelimit.KeyUse) int {
				return u.Calls
			}},
		{"Open streams of a key", "The busiest key or member now, over all replicas", "The API answers 429 CONCURRENCY_LIMIT",
			view.Own.Streams, func(u ratelimit.KeyUse) int {
				return u.Streams
			}},
	} {
		var busiest ratelimit.KeyUse
		for _, u := range uses {
			if limit.of(u) > limit.of(busiest) {
				busiest = u
			}
		}
		row := measured(limit.name, limit.hint, int64(limit.of(busiest)), int64(limit.most), countText, limit.enforcement)
		if busiest.Key != "" {
			if row.Who, err = names.name(p.Context(), busiest.Key); err != nil {
				return err
			}
		}
		view.Limits = append(view.Limits, row)
	}
	return nil
}

// readTurnLimits reads the limits of each turn, which belong to the version of an agent.
func (a *App) readTurnLimits(p *page, view *limitsView) error {
	ag, err := a.srv.Agents.Find(p.Context(), p.Workspace.ID, "")
	if err != nil {
		return err
	}
	v, err := a.srv.Agents.Version(p.Context(), ag, agent.Published)
	if err != nil {
		return err
	}
	cost := "No limit"
	if v.Limits.MaxCostUSD != nil {
		cost = "USD " + money(*v.Limits.MaxCostUSD, 2)
	}
	history, enforcement := "The model's window", "The oldest messages are summarized"
	if n := v.Limits.HistoryTokens; n != nil {
		history, enforcement = num(*n), "The oldest messages are left out"
	}
	view.Turn = []limitRow{
		{Name: "Time of a turn", Most: duration(time.Duration(v.Limits.MaxResponseSeconds) * time.Second),
			Enforcement: "Its worker ends it with timed_out. Waits for answers do not count"},
		{Name: "Model calls of a turn", Most: num(v.Limits.MaxTurns), Enforcement: "Its worker ends it with max_turns_exceeded"},
		{Name: "Cost of a turn", Most: cost, Enforcement: "Its worker ends it before the next step"},
		{Name: "Tokens of the history", Most: history, Enforcement: enforcement},
	}
	return nil
}

// limitsForm returns the form of the limits that the workspace sets.
func limitsForm(w workspace.Workspace) *form {
	text := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	return emptyForm("seen", strconv.FormatInt(w.UpdatedAt.UnixMicro(), 10), "max_running", strconv.Itoa(w.MaxRunning), "storage_quota",
		quotaText(w.StorageQuota),
		"messages_per_minute", text(w.MessagesPerMinute), "calls_per_minute", text(w.CallsPerMinute), "open_streams", text(w.OpenStreams))
}

// changeLimits serves the forms of the page.
func (a *App) changeLimits(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	switch f.Value("do") {
	case "limits":
		return a.saveLimits(w, p, f)
	case "budget":
		return a.saveBudget(w, p, f)
	case "delete":
		return a.deleteBudget(w, p, f)
	}
	return unknownForm()
}

func (a *App) saveLimits(w http.ResponseWriter, p *page, f *form) error {
	seen, err := strconv.ParseInt(f.Value("seen"), 10, 64)
	if err != nil {
		return unknownForm()
	}
	change := workspace.Change{Seen: new(time.UnixMicro(seen))}
	change.MaxRunning = f.number("max_running")
	change.MessagesPerMinute, change.CallsPerMinute, change.OpenStreams = f.ownNumber("messages_per_minute"),
		f.ownNumber("calls_per_minute"), f.ownNumber("open_streams")
	if quota, ok := parseQuota(f.Value("storage_quota")); ok {
		change.StorageQuota = new(int(quota))
	} else {
		f.fail("storage_quota", "This is not a size. Write 5 GiB, 500 MiB, or 0 for no quota.")
	}
	if !f.Failed() {
		if _, err = a.srv.Workspaces.Update(p.Context(), p.Workspace.ID, change); err != nil {
			if err := f.take(err, "max_running", "storage_quota", "messages_per_minute", "calls_per_minute", "open_streams"); err != nil {
				return err
			}
		}
	}
	if f.Failed() {
		return a.showLimits(w, p, http.StatusUnprocessableEntity, limitsView{Form: f})
	}
	p.flash(w, "Limits saved. They apply within a second.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/limits")
}

// number returns the number in a field, nil with an error if it is not a number.
func (f *form) number(name string) *int {
	n, err := strconv.ParseInt(strings.TrimSpace(f.Value(name)), 10, 32)
	if err != nil {
		f.fail(name, "This is not a number.")
		return nil
	}
	return new(int(n))
}

// ownNumber is number for a field that may be empty: then the server's own limit applies.
func (f *form) ownNumber(name string) *int {
	if strings.TrimSpace(f.Value(name)) == "" {
		return new(-1)
	}
	if n := f.number(name); n == nil || *n >= 0 {
		return n
	}
	f.fail(name, "A limit is not negative. Leave the field empty for the server's own.")
	return nil
}

// units are those of a size, the largest of each kind first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

// sizeText renders a size in the units of quotas.
func sizeText(n int64) string {
	for _, u := range units[:4] {
		if n >= u.bytes {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64), ".0") + " " + u.name
		}
	}
	return num(n) + " B"
}

// quotaText writes a quota so that parseQuota returns it unchanged.
func quotaText(n int64) string {
	for _, u := range units {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + " " + u.name
		}
	}
	return "0"
}

// parseQuota parses a size such as "5 GiB"; a number without a unit is in bytes.
func parseQuota(text string) (n int64, ok bool) {
	text, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if at := len(text) - len(u.name); at > 0 && strings.EqualFold(text[at:], u.name) {
			text, factor = strings.TrimSpace(text[:at]), u.bytes
			break
		}
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value*float64(factor) <= 1<<50) {
		return 0, false
	}
	return int64(value * float64(factor)), true
}
