package browser

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/proto"
)

// Page is a tab.
type Page struct {
	*rod.Page
	t     testing.TB
	plain bool // without scripts

	mu        sync.Mutex
	origin    string // of the first document
	documents map[string]bool
	problems  []string
	allowed   []string
}

// watch records the errors of the page.
func (p *Page) watch() {
	_ = proto.LogEnable{}.Call(p)
	_ = proto.RuntimeEnable{}.Call(p)
	_ = proto.NetworkEnable{}.Call(p)
	go p.EachEvent(func(e *proto.LogEntryAdded) {
		// The response of a page that is an error is not an error of the page.
		if e.Entry.Level != proto.LogLogEntryLevelError && e.Entry.Source != proto.LogLogEntrySourceSecurity {
			return
		}
		address, _, _ := strings.Cut(e.Entry.URL, "#")
		p.mu.Lock()
		defer p.mu.Unlock()
		if e.Entry.Source == proto.LogLogEntrySourceNetwork && p.documents[address] {
			return
		}
		p.add("log: %s %s", e.Entry.Text, e.Entry.URL)
	}, func(e *proto.RuntimeConsoleAPICalled) {
		if e.Type == proto.RuntimeConsoleAPICalledTypeError || e.Type == proto.RuntimeConsoleAPICalledTypeAssert {
			p.mu.Lock()
			defer p.mu.Unlock()
			var args []string
			for _, a := range e.Args {
				args = append(args, a.Value.String()+" "+a.Description)
			}
			p.add("console: %s", strings.Join(args, " "))
		}
	}, func(e *proto.RuntimeExceptionThrown) {
		p.mu.Lock()
		defer p.mu.Unlock()
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.add("exception: %s", text)
	}, func(e *proto.NetworkRequestWillBeSent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return
		}
		if e.Type == proto.NetworkResourceTypeDocument {
			p.documents[e.Request.URL] = true
			if p.origin == "" {
				p.origin = u.Host
			}
		}
		if u.Host != p.origin {
			p.add("request to another origin: %s", e.Request.URL)
		}
	})()
}

// add records a problem unless it is expected. The caller holds the lock.
func (p *Page) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, part := range p.allowed {
		if strings.Contains(text, part) {
			return
		}
	}
	p.problems = append(p.problems, text)
}

// Allow ignores problems that contain a text.
func (p *Page) Allow(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, part)
}

// Check fails the test for the problems so far.
func (p *Page) Check() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Errorf("the page reports: %s", problem)
	}
	p.problems = nil
}

// describe logs the page of a failed test.
func (p *Page) describe() {
	if info, err := p.Info(); err == nil {
		p.t.Logf("the page is %s", info.URL)
	}
	if body, err := p.Element("body"); err == nil {
		if text, err := body.Text(); err == nil {
			p.t.Logf("it shows:\n%.2000s", text)
		}
	}
}

// Go opens an address and waits until it is loaded.
func (p *Page) Go(address string) *Page {
	p.t.Helper()
	wait := p.Loaded
	if p.plain {
		wait = p.leave()
	}
	if err := p.Navigate(address); err != nil {
		p.t.Fatalf("open %s: %v", address, err)
	}
	wait()
	return p
}

// Loaded waits until the document is loaded.
func (p *Page) Loaded() {
	p.t.Helper()
	if err := p.WaitLoad(); err != nil {
		p.t.Fatalf("load: %v", err)
	}
}

// Element waits for an element that matches a selector.
func (p *Page) Element(selector string) (*rod.Element, error) {
	element, err := p.Timeout(patience).Element(selector)
	if err != nil {
		return nil, err
	}
	return element.CancelTimeout(), nil
}

// See waits for an element that matches a selector and contains a text.
func (p *Page) See(selector, text string) *rod.Element {
	p.t.Helper()
	element, err := p.Timeout(patience).ElementR(selector, regexp.QuoteMeta(text))
	if err != nil {
		p.t.Fatalf("no %s contains %q: %v", selector, text, err)
	}
	return element.CancelTimeout()
}

// Fill types a text into a field in place of its value.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	element, err := p.Element(selector)
	switch {
	case err != nil:
	case p.plain:
		if _, err = element.Eval(`() => { this.focus(); this.select() }`); err == nil {
			err = p.InsertText(text)
		}
	default:
		if err = element.SelectAllText(); err == nil {
			err = element.Input(text)
		}
	}
	if err != nil {
		p.t.Fatalf("fill %s: %v", selector, err)
	}
}

// Press clicks an element that leads to another document, and waits for that.
func (p *Page) Press(selector, text string) {
	p.t.Helper()
	element := p.See(selector, text)
	wait := p.leave()
	if !p.plain {
		wait = p.WaitNavigation(proto.PageLifecycleEventNameLoad)
	}
	if err := p.click(element); err != nil {
		p.t.Fatalf("click %s %q: %v", selector, text, err)
	}
	wait()
}

// click clicks an element. Without scripts there are no frames of animation to wait for.
func (p *Page) click(element *rod.Element) error {
	if !p.plain {
		return element.Click(proto.InputMouseButtonLeft, 1)
	}
	if err := (proto.DOMScrollIntoViewIfNeeded{ObjectID: element.Object.ObjectID}).Call(p); err != nil {
		return err
	}
	shape, err := element.Shape()
	if err != nil {
		return err
	}
	if err := p.Mouse.MoveTo(*shape.OnePointInside()); err != nil {
		return err
	}
	return p.Mouse.Click(proto.InputMouseButtonLeft, 1)
}

// Choose selects an option of a select element by its value.
func (p *Page) Choose(selector, value string) {
	p.t.Helper()
	element, err := p.Element(selector)
	if err == nil {
		_, err = element.Eval(`value => { this.value = value }`, value)
	}
	if err != nil {
		p.t.Fatalf("choose %s in %s: %v", value, selector, err)
	}
}

// leave marks the document and returns a function that waits until another one is complete. It asks
// for the state, because a promise or a listener of a page without scripts never ends.
func (p *Page) leave() (wait func()) {
	if !p.plain {
		return nil
	}
	_, _ = p.Eval(`() => { document.documentElement.dataset.left = "yes" }`)
	return func() {
		p.t.Helper()
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			done, err := p.Eval(`() => document.readyState === "complete" && !document.documentElement.dataset.left`)
			if err == nil && done.Value.Bool() { // an error: the document is being replaced
				return
			}
		}
		p.t.Fatal("no other document was loaded")
	}
}

// Path returns the path of the page.
func (p *Page) Path() string {
	p.t.Helper()
	info, err := p.Info()
	if err != nil {
		p.t.Fatal(err)
	}
	u, err := url.Parse(info.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	return u.Path
}

// Size sets the size of the window.
func (p *Page) Size(width, height int) {
	p.t.Helper()
	err := proto.EmulationSetDeviceMetricsOverride{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600}.Call(p)
	if err != nil {
		p.t.Fatal(err)
	}
}

// WithoutScripts turns off the scripts of pages that are opened from now on.
func (p *Page) WithoutScripts() {
	p.t.Helper()
	if err := (proto.EmulationSetScriptExecutionDisabled{Value: true}).Call(p); err != nil {
		p.t.Fatal(err)
	}
	p.plain = true
}

// Theme makes the system prefer light or dark colours.
func (p *Page) Theme(name string) {
	p.t.Helper()
	err := proto.EmulationSetEmulatedMedia{Features: []*proto.EmulationMediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}}.Call(p)
	if err != nil {
		p.t.Fatal(err)
	}
}

// axeSource is axe-core 4.14.1 of npm, MPL-2.0: its axe.min.js, unchanged.
//
//go:embed axe.min.js
var axeSource string

// Axe fails the test for violations of accessibility rules, in light and dark colours, at both
// widths.
func (p *Page) Axe() {
	p.t.Helper()
	p.each(func(look string) { p.axe(look) })
}

func (p *Page) axe(look string) {
	p.t.Helper()
	if _, err := (proto.RuntimeEvaluate{Expression: axeSource + "; 0"}).Call(p); err != nil {
		p.t.Fatalf("load axe: %v", err)
	}
	result, err := p.Eval(`async () => JSON.stringify((await axe.run(document, {resultTypes: ["violations"]})).violations.map(v =>
		({id: v.id, help: v.help, nodes: v.nodes.slice(0, 4).map(n => n.html.slice(0, 160) + " | " + (n.failureSummary || ""))})))`)
	if err != nil {
		p.t.Fatalf("run axe: %v", err)
	}
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(result.Value.Str()), &violations); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range violations {
		p.t.Errorf("axe at %s, %s: %s: %s\n%s", p.Path(), look, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
	if wide := p.MustEval(`() => document.documentElement.scrollWidth - document.documentElement.clientWidth`).Int(); wide > 0 {
		widest := p.MustEval(`() => { // the innermost of the elements that reach furthest to the right
			const all = [...document.querySelectorAll("body *")], end = e => e.getBoundingClientRect().right
			return all.sort((a, b) => end(a) - end(b)).pop().outerHTML.slice(0, 300)
		}`)
		p.t.Errorf("%s, %s: the page is %d px wider than the window: %s", p.Path(), look, wide, widest.Str())
	}
}

// Shot stores pictures of the whole page in the directory PARLEY_TEST_SCREENSHOTS, at 1280 and 390
// px, light and dark. Without the directory it does nothing.
func (p *Page) Shot(name string) {
	p.t.Helper()
	dir := os.Getenv("PARLEY_TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	p.each(func(look string) {
		data, err := p.Screenshot(true, &proto.PageCaptureScreenshot{Format: proto.PageCaptureScreenshotFormatPng})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+look+".png"), data, 0o644)
		}
		if err != nil {
			p.t.Errorf("picture of %s: %v", name, err)
		}
	})
}

// Review runs Axe and Shot.
func (p *Page) Review(name string) {
	p.t.Helper()
	p.Axe()
	p.Shot(name)
}

// each calls f at both widths in both themes, and returns to the first.
func (p *Page) each(f func(look string)) {
	p.t.Helper()
	for _, width := range []int{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			p.Size(width, 800)
			p.Theme(theme)
			f(fmt.Sprintf("%d-%s", width, theme))
		}
	}
	p.Size(1280, 800)
	p.Theme("light")
}

// CookieNames returns the names of the cookies.
func (p *Page) CookieNames() []string {
	cookies, err := p.Page.Cookies(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, c := range cookies {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
