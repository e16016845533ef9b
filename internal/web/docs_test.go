package web

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
	"golang.org/x/net/html"

	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/testing/slow"
)

// document is a page as a browser parses it.
type document struct {
	status int
	header http.Header
	text   string
	ids    map[string]bool
	links  []string
}

func fetch(t *testing.T, address string, header ...string) document {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	d := document{status: res.StatusCode, header: res.Header, text: string(body), ids: make(map[string]bool)}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		return d
	}
	root, err := html.Parse(strings.NewReader(d.text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				if d.ids[a.Val] {
					t.Errorf("%s has the id %s twice", address, a.Val)
				}
				d.ids[a.Val] = true
			case a.Key == "href", a.Key == "src":
				d.links = append(d.links, a.Val)
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has the attribute %s", address, a.Key)
			}
		}
	}
	return d
}

// TestEveryLinkOfTheDocumentationLeadsSomewhere walks all pages from the index: each answers, each
// link leads to a page or a file of the repository, each anchor to an id.
func TestEveryLinkOfTheDocumentationLeadsSomewhere(t *testing.T) {
	t.Parallel()
	slow.Test(t, "reads every page of the manual")
	w := newWorld(t)
	pages := make(map[string]document)
	anchors := 0
	queue := []string{"/docs"}
	var targets [][2]string // page, link
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if _, ok := pages[at]; ok {
			continue
		}
		d := fetch(t, w.URL+at)
		pages[at] = d
		if d.status != http.StatusOK {
			t.Errorf("%s: %d", at, d.status)
		}
		base, _ := url.Parse(at)
		for _, link := range d.links {
			if file, ours := strings.CutPrefix(link, "https://github.com/parley-server/parley/blob/main/"); ours {
				if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
					t.Errorf("%s links to the file %s, which does not exist", at, file)
				}
				continue
			}
			u, err := base.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			if u.Host != "" || !strings.HasPrefix(u.Path, "/docs") && !strings.HasPrefix(u.Path, "/static/") && !strings.HasPrefix(u.Path,
				"/api/v1/openapi") {
				continue
			}
			targets = append(targets, [2]string{at, u.Path + "#" + u.Fragment})
			queue = append(queue, u.Path)
		}
	}
	for _, target := range targets {
		at, anchor, _ := strings.Cut(target[1], "#")
		if anchor == "" {
			continue
		}
		anchors++
		if !pages[at].ids[anchor] {
			t.Errorf("%s links to %s#%s, which does not exist", target[0], at, anchor)
		}
	}
	m, err := w.app.manual()
	if err != nil {
		t.Fatal(err)
	}
	list := fetch(t, w.URL+"/llms.txt").text
	for _, p := range m.All() {
		if pages[p.Path].status != http.StatusOK || pages[m.MarkdownPath(p)].text != string(p.Markdown) {
			t.Errorf("%s or its Markdown is not linked", p.Path)
		}
		if p.Topic != "" && !strings.Contains(list, "]("+w.URL+m.MarkdownPath(p)+")") {
			t.Errorf("llms.txt does not list %s", p.Path)
		}
	}
	for _, tag := range m.API.Tags {
		for _, op := range tag.Operations {
			shown := pages[op.Address].text
			for _, response := range op.Responses {
				for _, code := range response.Codes {
					if !strings.Contains(shown, ">"+code+"</span>") {
						t.Errorf("%s does not show %s", op.Address, code)
					}
				}
			}
		}
	}
	if len(pages) < 80 || anchors < 1000 {
		t.Errorf("only %d pages and %d anchors were read", len(pages), anchors)
	}
}

// TestEveryExampleIsShown compares the text of each operation's page with the examples of the
// OpenAPI document.
func TestEveryExampleIsShown(t *testing.T) {
	t.Parallel()
	slow.Test(t, "reads every page of the manual")
	w := newWorld(t)
	m, err := w.app.manual()
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, tag := range m.API.Tags {
		for _, op := range tag.Operations {
			root, err := html.Parse(strings.NewReader(fetch(t, w.URL+op.Address).text))
			if err != nil {
				t.Fatal(err)
			}
			shown := textOf(root)
			contents := []string{op.Method, op.RequestPath, op.Summary, op.Curl(w.URL)}
			for _, p := range op.Parameters {
				contents = append(contents, p.Name)
			}
			bodies := slices.Clone(op.Responses)
			if op.Body != nil {
				for _, c := range op.Body.Contents {
					for _, e := range c.Examples {
						examples++
						contents = append(contents, e.Value)
					}
				}
			}
			for _, r := range bodies {
				contents = append(contents, r.Status)
				for _, c := range r.Contents {
					for _, e := range c.Examples {
						examples++
						contents = append(contents, e.Value)
					}
				}
			}
			if op.Webhook {
				contents = append(contents[:3], contents[4:]...)
			}
			for _, text := range contents {
				if !strings.Contains(shown, text) {
					t.Errorf("%s does not show %q", op.Address, text)
				}
			}
		}
	}
	if examples < 60 {
		t.Errorf("only %d examples were compared", examples)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestDocumentationIsCached reads pages with HEAD and with their ETag.
func TestDocumentationIsCached(t *testing.T) {
	t.Parallel()
	slow.Test(t, "renders every page of the documentation")
	w := newWorld(t)
	for path, kind := range map[string]string{
		"/docs": "text/html", "/docs/": "text/html", "/docs/guides/files": "text/html", "/docs/guides/files.md": "text/markdown",
		"/docs/search?q=cursor": "text/html", "/docs/api": "text/html", "/docs/api/sendMessage": "text/html",
		"/llms.txt": "text/plain", "/llms-full.txt": "text/plain",
	} {
		d := fetch(t, w.URL+path)
		etag := d.header.Get("ETag")
		if d.status != http.StatusOK || etag == "" || d.header.Get("Cache-Control") != "private, no-cache" ||
			!strings.HasPrefix(d.header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %v", path, d.status, d.header)
		}
		if again := fetch(t, w.URL+path, "If-None-Match", etag); again.status != http.StatusNotModified || again.text != "" {
			t.Errorf("%s again: %d", path, again.status)
		}
		if kind == "text/html" {
			if dark := fetch(t, w.URL+path, "If-None-Match", etag, "Cookie", "parley_theme=dark"); dark.status != http.StatusOK ||
				!strings.Contains(dark.text, `data-theme="dark"`) {
				t.Errorf("%s in dark: %d", path, dark.status)
			}
		}
		res, err := http.Head(w.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || res.Header.Get("ETag") != etag || len(body) > 0 {
			t.Errorf("HEAD %s: %d, ETag %s, %d bytes", path, res.StatusCode, res.Header.Get("ETag"), len(body))
		}
		if res, err = http.Post(w.URL+path, "", nil); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, res.StatusCode)
		}
	}
	if d := fetch(t, w.URL+"/docs/search?q="+url.QueryEscape(`"><script>alert(1)</script>`)); strings.Contains(d.text, "<script>") ||
		!strings.Contains(d.text, "&lt;script&gt;") {
		t.Errorf("the search repeats markup: %s", d.text)
	}
	for path, near := range map[string]string{
		"/docs/guides/aprovals": "/docs/guides/approvals", "/docs/api/sendMesage": "/docs/api/sendMessage",
		"/docs/guides/mcp": "/docs/reference/mcp",
	} {
		if d := fetch(t, w.URL+path); d.status != http.StatusNotFound || !slices.Contains(d.links, near) {
			t.Errorf("%s: %d, links %q", path, d.status, d.links)
		}
	}
}

// TestDocumentationInABrowser reads and searches pages.
func TestDocumentationInABrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t)
	p.Go(w.URL + "/docs")
	p.Shot("docs-index")
	p.Fill("#q", "resume a stream")
	wait := p.WaitNavigation(proto.PageLifecycleEventNameLoad)
	p.MustElement("#q").MustType(input.Enter)
	wait()
	p.See("ol.hits mark", "resume")
	p.Review("docs-search")
	p.Press("ol.hits a", "Streaming")
	p.See("h1", "Streaming")
	p.Review("docs-page")
	p.Go(w.URL + "/docs/guides/clients/ag-ui")
	p.Shot("docs-code")
	p.Go(w.URL + "/docs/guides/mising")
	p.See("h1", "Page not found")
	p.Shot("docs-missing")
	p.Go(w.URL + "/docs/api")
	p.Review("docs-api")
}

// TestReferenceSendsRequests sends a request with a wrong key, and a message whose stream is shown.
func TestReferenceSendsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t)
	p.Allow("401")
	p.Go(w.URL + "/docs/api/listSessions")
	p.Fill("#try-key", "prl_wrong")
	p.See("button", "Send request").MustClick()
	p.See("[data-output]", "INVALID_API_KEY")
	p.See("[data-status]", "401")
	p.Go(w.URL + "/docs/api/sendMessage")
	p.Fill("#try-key", w.Issue(t, w.Workspace, "chat", "sessions:read"))
	p.See("button", "Send request").MustClick()
	p.See("[data-output]", "event: done")
	p.See("[data-status]", "200 OK, complete")
	p.Review("docs-operation")
}
