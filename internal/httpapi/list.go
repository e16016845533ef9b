package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
)

// maxPage is how many items a page may have.
const maxPage = 100

// listSessions answers with one page of the workspace's sessions.
func (s *server) listSessions(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	p := parse(r.URL.RawQuery)
	q := session.SummaryQuery{
		Limit:        p.limit(20),
		Cursor:       p.one("cursor"),
		CallerID:     p.text("caller_id"),
		Status:       session.Status(p.enum("status", string(session.NotStarted), string(session.Thinking), string(session.Done))),
		CreatedAfter: p.time("created_after"),
		OldestFirst:  p.enum("order", "desc", "asc") == "asc",
	}
	if err := p.err(); err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	page, err := s.cfg.Sessions.Summaries(ctx, r.workspace.ID, q)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// listMessages answers with one page of a session's messages.
func (s *server) listMessages(w http.ResponseWriter, r *request) error {
	if err := accepts(r.Request, jsonType); err != nil {
		return err
	}
	p := parse(r.URL.RawQuery)
	q := session.MessageQuery{Limit: p.limit(50), Cursor: p.one("cursor"), NewestFirst: p.enum("order", "asc", "desc") == "desc"}
	if err := p.err(); err != nil {
		return err
	}
	id, err := r.session()
	if err != nil {
		return err
	}
	ctx, cancel := s.brief(r.Context())
	defer cancel()
	page, err := s.cfg.Sessions.Messages(ctx, r.workspace.ID, id, q)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page)
}

// params reads a query string and gathers what is wrong with it. A parameter that
// is empty counts as absent.
type params struct {
	checks
	values url.Values
}

func parse(query string) *params {
	p := &params{}
	var err error
	if p.values, err = url.ParseQuery(query); err != nil {
		p.add(fault.Violation{Param: "", Rule: "format", Message: "The query string cannot be parsed."})
	}
	return p
}

// one is the value of a parameter, "" for none.
func (p *params) one(name string) string {
	switch values := p.values[name]; len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	}
	p.add(fault.Violation{Param: "/" + name, Rule: "repeated", Message: name + " is there more than once."})
	return ""
}

func (p *params) limit(usual int) int {
	text := p.one("limit")
	if text == "" {
		return usual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.typ("/limit", "integer")
		return usual
	}
	return p.within("/limit", float64(n), 1, maxPage)
}

// text is a parameter that may be anything that text can be.
func (p *params) text(name string) *string {
	s := p.one(name)
	if s == "" {
		return nil
	}
	if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		p.add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " is not text in UTF-8."})
	}
	return &s
}

func (p *params) enum(name string, allowed ...string) string {
	s := p.one(name)
	if s == "" {
		return ""
	}
	v := fault.Violation{Param: "/" + name, Rule: "enum", Message: fmt.Sprintf("%s can be %s.", name, strings.Join(allowed, ", "))}
	for _, a := range allowed {
		if a == s {
			return s
		}
		v.Allowed = append(v.Allowed, a)
	}
	p.add(v)
	return ""
}

func (p *params) time(name string) *time.Time {
	text := p.one(name)
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		p.add(fault.Violation{Param: "/" + name, Rule: "format", Message: name + " is not a time like 2026-01-31T12:00:00Z.", Expected: "date-time"})
		return nil
	}
	return &t
}
