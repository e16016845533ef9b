// Package browser drives Chromium in tests of the web application. One browser serves all tests of
// a process; each page has cookies and storage of its own.
//
// It promises: a test fails if one of its pages reports an error in its console, a violation of its
// Content-Security-Policy, or a request to another origin.
package browser

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/go-rod/rod/lib/launcher/flags"
	"github.com/go-rod/rod/lib/proto"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
)

// limit is how long a test may use a page, so that a page that hangs ends before the tests of its
// package do. The checks of accessibility of one page took a minute on a busy machine.
const limit = 5 * time.Minute

// patience is how long a page may take to show something.
const patience = time.Minute

var shared struct {
	mu      sync.Mutex
	browser *rod.Browser
	run     *launcher.Launcher
	err     error
}

// Main runs the tests of a package and closes the browser afterwards. It returns the exit code.
func Main(m *testing.M) int {
	defer Close()
	return m.Run()
}

// Close ends the browser of this process.
func Close() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.browser != nil {
		_ = shared.browser.Close()
		shared.run.Kill()
		shared.run.Cleanup()
		shared.browser = nil
	}
}

// open starts the browser on its first use.
func open(bin string) (*rod.Browser, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.browser != nil || shared.err != nil {
		return shared.browser, shared.err
	}
	run := launcher.New().Bin(bin).Headless(true).NoSandbox(os.Geteuid() == 0).Leakless(false)
	for _, flag := range []string{"disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "force-color-profile", "hide-scrollbars"} {
		run.Set(flags.Flag(flag))
	}
	control, err := run.Launch()
	if err == nil {
		shared.browser, shared.run = rod.New().ControlURL(control), run
		err = shared.browser.Connect()
	}
	if err != nil {
		shared.err = fmt.Errorf("start Chromium: %w", err)
	}
	return shared.browser, shared.err
}

// find finds a browser under its usual names.
func find() (string, bool) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// New opens an empty page with cookies and storage of its own. Without a browser it skips the test,
// or fails it if PARLEY_TEST_REQUIRE is all.
func New(t testing.TB) *Page {
	t.Helper()
	slow.Test(t, "runs Chromium")
	bin, found := find()
	if !found {
		need.Missing(t, "no Chromium: install the package chromium")
	}
	browser, err := open(bin)
	if err != nil {
		t.Fatal(err)
	}
	private, err := browser.Incognito()
	if err != nil {
		t.Fatal(err)
	}
	tab, err := private.Page(proto.TargetCreateTarget{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{Page: tab.Timeout(limit), t: t, documents: make(map[string]bool)}
	p.watch()
	t.Cleanup(func() {
		if t.Failed() {
			p.describe()
		}
		p.Check()
		_ = proto.TargetDisposeBrowserContext{BrowserContextID: private.BrowserContextID}.Call(browser)
	})
	p.Size(1280, 800)
	return p
}
