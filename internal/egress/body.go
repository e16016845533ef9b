package egress

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// searchBody reads the body if it may contain placeholders to replace. Otherwise the body is
// streamed.
func (r *Run) searchBody(ctx context.Context, p *plan) error {
	may := func(c *credential) bool { return c.InBody }
	if p.body == nil || p.body == http.NoBody {
		return nil
	}
	if !slices.ContainsFunc(p.here, may) {
		p.body = &limited{p.body, r.maxBody, bodyTooLarge(r.maxBody)}
		return nil
	}
	held, err := r.holdBody(ctx, p)
	if err != nil {
		return err
	}
	found := p.findCredentials(held.text, may)
	if len(found) == 0 {
		p.body, p.length = held, int64(len(held.text))
		return nil
	}
	if err := held.insertValues(found, bodyEscape(p.header.Get("Content-Type"))); err != nil {
		held.Close()
		return err
	}
	p.body, p.length = held, held.length
	return nil
}

// holdBody reads a body into memory, within the memory budget of the process.
func (r *Run) holdBody(ctx context.Context, p *plan) (*heldBody, error) {
	size, beyond := p.length, invalidRequest("The body is longer than its Content-Length.")
	if size <= 0 { // not known
		size, beyond = MaxSearchedBody, bodyTooLarge(MaxSearchedBody)
	}
	if size > MaxSearchedBody {
		return nil, bodyTooLarge(MaxSearchedBody)
	}
	release, err := r.reserveMemory(ctx, size)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	text.Grow(int(size))
	_, err = io.Copy(&text, &limited{p.body, size, beyond})
	if _, refused := errors.AsType[*Error](err); err != nil && !refused {
		err = invalidRequest("The body could not be read.")
	}
	if err != nil {
		release()
		return nil, err
	}
	p.body.Close()
	return newHeldBody(text.String(), release), nil
}

// reserveMemory reserves memory for a body: from the run's part first, so that a run which waits
// for its own requests does not delay other runs.
func (r *Run) reserveMemory(ctx context.Context, size int64) (release func(), err error) {
	mine, err := r.bodies.acquireBytes(ctx, size)
	if err != nil {
		return nil, err
	}
	all, err := r.guard.bodies.acquireBytes(ctx, size)
	if err != nil {
		mine()
		return nil, err
	}
	return func() { all(); mine() }, nil
}

// bodyEscape returns how a value is escaped in a body, so that it stays one value.
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

// heldBody is a body in memory. Values are inserted while it is sent, so that a long value in many
// places takes memory once. Close releases its part of the budget.
type heldBody struct {
	io.Reader
	text    string
	length  int64
	release func()
}

func newHeldBody(text string, release func()) *heldBody {
	return &heldBody{strings.NewReader(text), text, int64(len(text)), sync.OnceFunc(release)}
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	b.release()
	return nil
}

// insertValues replaces placeholders with values. No placeholder is a part of another.
func (b *heldBody) insertValues(found []*credential, escape func(string) string) error {
	values, next := make([]string, len(found)), make([]int, len(found))
	for i, c := range found {
		values[i] = escape(string(c.Value.Reveal()))
		next[i] = strings.Index(b.text, c.Placeholder)
	}
	var parts []io.Reader
	b.length = 0
	add := func(part string) {
		parts = append(parts, strings.NewReader(part))
		b.length += int64(len(part))
	}
	at := 0
	for {
		first := -1
		for i, c := range found {
			if next[i] >= 0 && next[i] < at { // a replaced placeholder overlapped it
				if next[i] = strings.Index(b.text[at:], c.Placeholder); next[i] >= 0 {
					next[i] += at
				}
			}
			if next[i] >= 0 && (first < 0 || next[i] < next[first]) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		if len(parts) >= 2*MaxPlaceholders {
			return invalidRequest("The body has more than %d placeholders of secrets.", MaxPlaceholders)
		}
		add(b.text[at:next[first]])
		add(values[first])
		at = next[first] + len(found[first].Placeholder)
	}
	add(b.text[at:])
	b.Reader = io.MultiReader(parts...)
	return nil
}
