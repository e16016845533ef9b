package connect

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
)

// page is the content of a page.
type page struct {
	Title   string
	Text    string
	Facts   [][2]string
	Button  string // sends the form
	Address string // where the browser goes by itself
	Host    string // of Address
}

const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1.25rem}` +
	`h1{font-size:1.4rem}dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem}dt{opacity:.7}dd{margin:0;overflow-wrap:anywhere}` +
	`button{font:inherit;padding:.5rem 1.25rem;cursor:pointer}`

// policy allows nothing but the style and the form.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// setHeaders sets the headers of every page.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer") // the address is the link
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Robots-Tag", "noindex")
}

var layout = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
{{if .Address}}<meta http-equiv="refresh" content="0; url={{.Address}}">
{{end}}<title>{{.Title}}</title><style>` + style + `</style></head>
<body><main><h1>{{.Title}}</h1><p>{{.Text}}</p>
{{if .Facts}}<dl>{{range .Facts}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>{{end}}</dl>
{{end}}{{if .Button}}<form method="post"><p><button>{{.Button}}</button></p></form>
{{end}}{{if .Address}}<p><a href="{{.Address}}" rel="noreferrer">Continue to {{.Host}}</a></p>
{{end}}</main></body></html>
`))

func writePage(w http.ResponseWriter, status int, p page) error {
	var b bytes.Buffer
	if err := layout.Execute(&b, p); err != nil {
		return fmt.Errorf("render a page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser has left
	return nil
}

// writeError writes an error as a page.
func writeError(w http.ResponseWriter, _ *http.Request, f *fault.Error) {
	setHeaders(w.Header())
	title := "Not connected"
	switch f.Code.Status() {
	case http.StatusGone:
		title = "This link has ended"
	case http.StatusNotFound:
		title = "Unknown link"
	}
	_ = writePage(w, f.Code.Status(), page{Title: title, Text: f.Message})
}

// askPage shows who would get access to what.
func askPage(l toolset.Link, s toolset.Server) page {
	who := "every turn of the workspace"
	if kind, name, ok := strings.Cut(l.Holder, ":"); ok {
		who = "turns of the " + map[string]string{"user": "user", "caller": "caller", "key": "API key"}[kind] + " " + name
	}
	p := page{Title: "Connect " + s.Name, Text: "Parley asks for access to a tool server in your name. You sign in at that " +
		"server's own authorization server, and decide there.",
		Facts: [][2]string{{"Workspace", l.WorkspaceName}, {"Tool server", s.Name}, {"Address", s.URL}, {"Used by", who}}, Button: "Continue"}
	if scopes := slices.Concat(l.Scopes, s.Auth.Scopes); len(scopes) > 0 {
		p.Facts = append(p.Facts, [2]string{"Asks for", strings.Join(slices.Compact(scopes), ", ")})
	}
	p.Facts = append(p.Facts, [2]string{"Works until", l.ExpiresAt.UTC().Format("15:04 MST")})
	return p
}

// leavePage leads to the authorization server. A redirect would need its host in the policy of forms.
func leavePage(l toolset.Link, address string) page {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return page{Title: "Connect " + l.ServerName, Text: "You decide at " + host + " whether Parley gets access.", Address: address, Host: host}
}
