package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/placeholder"
)

// find looks for placeholders. It returns those that will be replaced: of secrets
// that are for this host, and for a place that may hold them.
func (p *plan) find(text string, may func(*credential) bool) (found []*credential) {
	for _, c := range p.here {
		switch {
		case !strings.Contains(text, c.Placeholder):
		case may(c):
			found = append(found, c)
			if use := (Use{c.Name, c.Version}); !slices.Contains(p.request.Credentials, use) {
				p.request.Credentials = append(p.request.Credentials, use)
			}
		default:
			p.leave(c)
		}
	}
	for _, c := range p.away {
		if strings.Contains(text, c.Placeholder) {
			p.leave(c)
		}
	}
	return found
}

// leave notes that a placeholder goes out as it is.
func (p *plan) leave(c *credential) {
	if !slices.Contains(p.request.Refused, c.Name) {
		p.request.Refused = append(p.request.Refused, c.Name)
	}
}

func (p *plan) searchHeader(h http.Header) {
	p.header = cleanRequest(h)
	for _, values := range p.header {
		for i, v := range values {
			text, write := placeholder.Header(v)
			found := p.find(text, func(*credential) bool { return true })
			if len(found) == 0 {
				continue
			}
			p.edits = append(p.edits, func() error {
				filled := replace(text, found, func(s string) string { return s })
				if control(filled) {
					return refuse("A secret's value cannot stand in a header.")
				}
				values[i] = write(filled)
				return nil
			})
		}
	}
}

func (p *plan) searchQuery() {
	query := p.url.RawQuery
	if found := p.find(query, func(c *credential) bool { return c.InQuery }); len(found) > 0 {
		p.edits = append(p.edits, func() error {
			p.url.RawQuery = replace(query, found, url.QueryEscape)
			return nil
		})
	}
}

// searchBody reads the body where a value may have to be put in. Where none may, it
// passes by as it comes.
func (p *plan) searchBody(limit int64) error {
	may := func(c *credential) bool { return c.InBody }
	if p.body == nil || p.body == http.NoBody {
		return nil
	}
	if !slices.ContainsFunc(p.here, may) {
		p.body = &limited{p.body, limit, bodyTooLarge(limit)}
		return nil
	}
	text, err := io.ReadAll(&limited{p.body, MaxSearchedBody, bodyTooLarge(MaxSearchedBody)})
	if _, refused := errors.AsType[*Error](err); err != nil && !refused {
		err = refuse("The body could not be read.")
	}
	if err != nil {
		return err
	}
	p.body.Close()
	p.setBody(text)
	if found := p.find(string(text), may); len(found) > 0 {
		escape := bodyEscape(p.header.Get("Content-Type"))
		p.edits = append(p.edits, func() error {
			p.setBody([]byte(replace(string(text), found, escape)))
			return nil
		})
	}
	return nil
}

func (p *plan) setBody(text []byte) {
	p.body, p.length = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// bodyEscape is how a value is written in a body, so that it stays one value.
func bodyEscape(contentType string) func(string) string {
	kind := strings.ToLower(contentType)
	switch {
	case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
		return url.QueryEscape
	case strings.Contains(kind, "json"):
		return func(s string) string {
			text, _ := json.Marshal(s)
			return string(text[1 : len(text)-1])
		}
	}
	return func(s string) string { return s }
}

// replace puts values in place of placeholders, all at once: what a value looks like
// is never looked at.
func replace(text string, found []*credential, escape func(string) string) string {
	pairs := make([]string, 0, 2*len(found))
	for _, c := range found {
		pairs = append(pairs, c.Placeholder, escape(string(c.Value.Reveal())))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// fill makes the request that is sent: the only one that holds values.
func (p *plan) fill(ctx context.Context) (*http.Request, error) {
	for _, edit := range p.edits {
		if err := edit(); err != nil {
			if p.body != nil {
				p.body.Close()
			}
			return nil, err
		}
	}
	req := (&http.Request{Method: p.method, URL: p.url, Header: p.header, Body: p.body, ContentLength: p.length}).WithContext(ctx)
	return req, nil
}
