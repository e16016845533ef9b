package web

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/text"
)

const (
	exportTime = time.Minute // to read a session or a list
	maxExport  = 64 << 20    // bytes of a download, which is made in memory
	csvRows    = 10_000
)

// exportedEvent is an event as in a stream, and in parley sessions export.
type exportedEvent struct {
	Event event.Kind      `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// exportSession sends a session as a file. Its format is md, json or jsonl, as in parley sessions
// export.
func (a *App) exportSession(w http.ResponseWriter, p *page) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), exportTime)
	defer cancel()
	id, ok := request.ID(p.PathValue("session"))
	if !ok {
		return fault.New(fault.SessionNotFound, "The session does not exist in this workspace.")
	}
	sum, err := a.srv.Sessions.Summary(ctx, p.Workspace.ID, id)
	if err != nil {
		return err
	}
	messages, err := a.allMessages(ctx, p, sum)
	if err != nil {
		return err
	}
	format, kind := p.URL.Query().Get("format"), "application/json"
	var out bytes.Buffer
	switch format {
	case "md":
		kind = "text/markdown; charset=utf-8"
		writeMarkdown(&out, sum, messages)
	case "json", "jsonl":
		var events []exportedEvent
		if events, err = a.allEvents(ctx, sum); err == nil && format == "json" {
			err = encodeJSON(&out, map[string]any{"session_id": id, "messages": messages, "events": events})
		} else if err == nil {
			kind = "application/jsonl"
			err = writeLines(&out, messages, events)
		}
	default:
		err = fault.New(fault.InvalidRequestBody, "A session can be exported as md, json or jsonl.")
	}
	if err != nil {
		return err
	}
	return sendFile(w, p, "session-"+id.String()+"."+format, kind, out.Bytes())
}

// sendFile responds with a download.
func sendFile(w http.ResponseWriter, p *page, name, kind string, data []byte) error {
	if len(data) > maxExport {
		return fault.New(fault.PayloadTooLarge, "The file would have %s. Use parley sessions export.", byteSize(int64(len(data))))
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	if p.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
	return nil
}

func (a *App) allMessages(ctx context.Context, p *page, sum session.Summary) ([]session.Message, error) {
	all, q := []session.Message{}, session.MessageQuery{Limit: 200}
	for {
		list, err := a.srv.Sessions.Messages(ctx, p.Workspace.ID, sum.SessionID, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, list.Data...); !list.HasMore {
			return all, nil
		}
		q.Cursor = *list.NextCursor
	}
}

func (a *App) allEvents(ctx context.Context, sum session.Summary) ([]exportedEvent, error) {
	all, size := []exportedEvent{}, 0
	for evs, err := range a.srv.EventLog.After(ctx, eventlog.From{Session: sum.SessionID, Since: sum.CreatedAt}) {
		if err != nil {
			return nil, err
		}
		for _, ev := range evs {
			all = append(all, exportedEvent{ev.Kind, strconv.FormatInt(ev.Seq, 10), ev.Data})
			if size += len(ev.Data); size > maxExport {
				return nil, fault.New(fault.PayloadTooLarge, "The file would have more than %s. Use parley sessions export.", byteSize(maxExport))
			}
		}
	}
	return all, nil
}

func encodeJSON(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeLines writes messages and events in their order: the user's message before the events of its
// turn, the agent's after them.
func writeLines(out *bytes.Buffer, messages []session.Message, events []exportedEvent) error {
	type line struct {
		at    int64
		value any
	}
	var lines []line
	for _, ev := range events {
		at, err := strconv.ParseInt(ev.ID, 10, 64)
		if err != nil {
			return err
		}
		lines = append(lines, line{at, ev})
	}
	for _, m := range messages {
		at := m.LastSeq
		if m.Role == "user" {
			at = m.FirstSeq
		}
		lines = append(lines, line{at, map[string]any{"message": m}})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	for _, l := range lines {
		if err := encodeJSON(out, l.value); err != nil {
			return err
		}
	}
	return nil
}

// writeMarkdown writes the conversation. The user's text is quoted, so that its headings do not
// become those of the page.
func writeMarkdown(out *bytes.Buffer, sum session.Summary, messages []session.Message) {
	fmt.Fprintf(out, "# Session %s\n", sum.SessionID)
	for _, m := range messages {
		name := map[bool]string{true: "User", false: "Agent"}[m.Role == "user"]
		if m.User != nil {
			name = maskText(m.User)
		}
		fmt.Fprintf(out, "\n## %s, %s\n", strings.Join(strings.Fields(name), " "), m.CreatedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
		body := maskText(m.Content)
		switch {
		case m.Erased:
			out.WriteString("\n*The content was erased.*\n")
		case body != "" && m.Role == "user":
			out.WriteString("\n> " + strings.ReplaceAll(body, "\n", "\n> ") + "\n")
		case body != "":
			out.WriteString("\n" + body + "\n")
		}
		for i, f := range m.Attachments {
			fmt.Fprintf(out, "%s- %s (%s)\n", strings.Repeat("\n", max(0, 1-i)), text.Mask(f.Filename), byteSize(f.Size))
		}
		if m.Failure != "" {
			out.WriteString("\n*" + maskText(m.Failure) + "*\n")
		}
	}
}

// exportSessions sends the newest sessions that match a query as a table.
func (a *App) exportSessions(w http.ResponseWriter, p *page, q session.SummaryQuery) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), exportTime)
	defer cancel()
	var out bytes.Buffer
	table := csv.NewWriter(&out)
	_ = table.Write([]string{"session_id", "title", "caller_id", "user", "status", "error", "messages", "input_tokens", "output_tokens",
		"cost_usd", "created_at", "updated_at"})
	q.Cursor, q.Limit = "", 500
	for rows := 0; rows < csvRows; rows += q.Limit {
		list, err := a.srv.Sessions.Summaries(ctx, p.Workspace.ID, q)
		if err != nil {
			return err
		}
		for _, s := range list.Data {
			cost := ""
			if s.Usage.CostUSD != nil {
				cost = strconv.FormatFloat(*s.Usage.CostUSD, 'f', -1, 64)
			}
			_ = table.Write([]string{s.SessionID.String(), cell(&s.Title), cell(s.CallerID), cell(s.User), string(s.Status), cell(s.Error),
				strconv.Itoa(int(s.MessageCount)), strconv.FormatInt(s.Usage.InputTokens, 10), strconv.FormatInt(s.Usage.OutputTokens, 10), cost,
				s.CreatedAt.UTC().Format(time.RFC3339), s.UpdatedAt.UTC().Format(time.RFC3339)})
		}
		if !list.HasMore {
			break
		}
		q.Cursor = *list.NextCursor
	}
	table.Flush()
	return sendFile(w, p, "sessions-"+p.Workspace.Slug+".csv", "text/csv; charset=utf-8", out.Bytes())
}

// cell returns a text for a cell. A spreadsheet would calculate one that begins like a formula.
func cell(s *string) string {
	if s == nil || *s == "" {
		return ""
	}
	if strings.ContainsRune("=+-@\t\r", rune((*s)[0])) {
		return "'" + *s
	}
	return *s
}
