package docsite_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/web/docsite"
)

// TestUntrustedTexts renders what authors could harm readers with, next to what they need.
func TestUntrustedTexts(t *testing.T) {
	t.Parallel()
	resolve := func(link string) string { return "/doc?path=" + link }
	for source, want := range map[string]string{
		"# Title\n\n### Part\n":                   "<h3>Title</h3>\n<h4>Part</h4>\n",
		"[a](javascript:x) [b](release.md#part)":  `<p><span>a</span> <a href="/doc?path=release.md" rel="noopener noreferrer nofollow">b</a></p>` + "\n",
		"[a](//evil.example/x) [b](#part)":        "<p><span>a</span> <span>b</span></p>\n",
		"[a](JAVASCRIPT:x) [b](data:text/html,x)": "<p><span>a</span> <span>b</span></p>\n",
		"<javascript:x> <https://example.com/?a=1&b>": `<p>javascript:x <a href="https://example.com/?a=1&amp;b" rel="noopener ` +
			`noreferrer nofollow">https://example.com/?a=1&amp;b</a></p>` + "\n",
		"<anna@example.com>":                            `<p><a href="mailto:anna@example.com" rel="noopener noreferrer nofollow">anna@example.com</a></p>` + "\n",
		"![a <b>](https://example.com/x.png)":           `<p><a href="https://example.com/x.png" rel="noopener noreferrer nofollow">image: a </a></p>` + "\n",
		"a <img src=x onerror=x> b":                     "<p>a &lt;img src=x onerror=x&gt; b</p>\n",
		"<script>\nx()\n</script>\n\nText":              "<p>&lt;script&gt;\nx()\n&lt;/script&gt;</p>\n<p>Text</p>\n",
		"```html\n<b>\n```\n":                           `<pre class="code" tabindex="0" role="group" aria-label="Code">&lt;b&gt;` + "\n</pre>\n",
		"[a](<x\" onclick=\"y> \"title\\\" onload=x\")": `<p><a href="/doc?path=x&#34; onclick=&#34;y" rel="noopener noreferrer nofollow">a</a></p>` + "\n",
	} {
		got, err := docsite.Untrusted(source, resolve)
		if err != nil || string(got) != want {
			t.Errorf("%q is\n%s%v, want\n%s", source, got, err, want)
		}
	}
	if got, err := docsite.Untrusted("[a](release.md)", nil); err != nil || strings.Contains(string(got), "<a") {
		t.Errorf("a link without an address is %s, %v", got, err)
	}
}
