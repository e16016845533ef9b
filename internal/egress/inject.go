package egress

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/placeholder"
)

// findCredentials finds placeholders in a text. It returns the credentials to insert: those for
// this host, in a place that may contain them.
func (p *plan) findCredentials(text string, may func(*credential) bool) (found []*credential) {
	for _, c := range p.here {
		switch {
		case !strings.Contains(text, c.Placeholder):
		case may(c):
			found = append(found, c)
			if !slices.Contains(p.used, c) {
				p.used = append(p.used, c)
				p.request.Credentials = append(p.request.Credentials, Use{c.Name, c.Version})
			}
		default:
			p.leaveUnchanged(c)
		}
	}
	for _, c := range p.away {
		if strings.Contains(text, c.Placeholder) {
			p.leaveUnchanged(c)
		}
	}
	return found
}

// findInLine is findCredentials for a part of a request that is one line.
func (p *plan) findInLine(text string, may func(*credential) bool) (found []*credential, err error) {
	found = p.findCredentials(text, may)
	for _, c := range found {
		if c.lines {
			return nil, invalidRequest("The value of %s has several lines: it can only be sent in the body of a request.", c.Name)
		}
	}
	return found, nil
}

// leaveUnchanged records that a placeholder is sent unchanged.
func (p *plan) leaveUnchanged(c *credential) {
	if !slices.Contains(p.request.Refused, c.Name) {
		p.request.Refused = append(p.request.Refused, c.Name)
	}
}

func (p *plan) searchHeader(h http.Header) error {
	p.header = cleanRequest(h)
	for _, values := range p.header {
		for i, v := range values {
			text, write := placeholder.Header(v)
			found, err := p.findInLine(text, func(*credential) bool { return true })
			if err != nil {
				return err
			}
			if len(found) == 0 {
				continue
			}
			p.edits = append(p.edits, func() error {
				filled, err := replacePlaceholders(text, found, func(s string) string { return s })
				if err != nil {
					return err
				}
				if isControlled(filled) {
					return invalidRequest("A secret's value cannot stand in a header.")
				}
				values[i] = write(filled)
				return nil
			})
		}
	}
	return nil
}

func (p *plan) searchQuery() error {
	query := p.url.RawQuery
	found, err := p.findInLine(query, func(c *credential) bool { return c.InQuery })
	if len(found) > 0 {
		p.edits = append(p.edits, func() (err error) {
			p.url.RawQuery, err = replacePlaceholders(query, found, url.QueryEscape)
			return err
		})
	}
	return err
}

// replacePlaceholders replaces all placeholders with values at once: inserted values are not
// searched. It is for headers and queries, which are small.
func replacePlaceholders(text string, found []*credential, escape func(string) string) (string, error) {
	pairs := make([]string, 0, 2*len(found))
	size := len(text)
	for _, c := range found {
		value := escape(string(c.Value.Reveal()))
		pairs = append(pairs, c.Placeholder, value)
		size += strings.Count(text, c.Placeholder) * len(value)
	}
	if size > MaxHeader {
		return "", newRefusal(RefusedRequest, http.StatusRequestHeaderFieldsTooLarge,
			"A header or query is larger than %d KiB with its secrets.", MaxHeader>>10)
	}
	return strings.NewReplacer(pairs...).Replace(text), nil
}

// fillRequest makes the request that is sent: the only one that contains values.
func (p *plan) fillRequest(ctx context.Context) (*http.Request, error) {
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
