package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// playWorld is a server whose agent asks before each call, and a member who is signed in.
func playWorld(t *testing.T, window time.Duration) *world {
	t.Helper()
	s := apitest.New(t, apitest.Options{
		Tools: func(*apitest.Service) []tool.Tool { return []tool.Tool{apitest.Touch{}, gitTool{}} },
		Turns: func(c *turn.Config) {
			if window > 0 {
				apitest.Asking(c)
				c.Window = window
			}
		},
	})
	return serveWorld(t, s)
}

// openPlay opens a page of the workspace.
func (w *world) openPlay(t *testing.T, path string) *browser.Page {
	t.Helper()
	p := w.signIn(t, account.NewUser{Email: strings.ToLower(rand.Text()) + "@halden.example", Name: "Anna Lindqvist"}, apikey.Owner)
	return p.Go(w.URL + "/w/demo/" + path)
}

// find waits for an element.
func find(t *testing.T, p *browser.Page, selector string) *rod.Element {
	t.Helper()
	element, err := p.Element(selector)
	if err != nil {
		t.Fatalf("no %s: %v", selector, err)
	}
	return element
}

// send types a message and sends it.
func send(t *testing.T, p *browser.Page, text string) {
	t.Helper()
	find(t, p, "#msg").MustInput(text)
	p.Keyboard.MustType(input.Enter)
}

// TestSendAndRead sends messages with the cookie of a member to the default agent, to another one and
// to its draft.
func TestSendAndRead(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 0)
	w.makeAgents(t)
	p := w.openPlay(t, "chat")
	send(t, p, "@say **Hello** from the agent.")
	p.See(".prose strong", "Hello")
	p.See("#state", "done")
	p.Review("chat")
	inside := p.MustEval(`() => {
		const live = document.getElementById("live"), before = live.textContent;
		live.textContent = "reconnecting";
		const end = document.getElementById("drop").getBoundingClientRect().right;
		live.textContent = before;
		return end <= innerWidth;
	}`)
	if !inside.Bool() {
		t.Error("the button that drops the connection is cut off while the stream reconnects")
	}
	p.Size(380, 800)
	if !find(t, p, "#agent").MustVisible() {
		t.Error("a narrow playground has no agents")
	}
	p.Size(1280, 800)
	for _, label := range []string{"support v1", "support draft"} {
		find(t, p, "#agent").MustSelect(label)
		send(t, p, "@say From "+label+".")
		p.MustWait(`(text) => [...document.querySelectorAll(".prose")].some((n) => n.textContent.includes(text))`, "From "+label)
		p.See("#state", "done")
	}
	p.MustReload().MustWaitLoad()
	p.See("#agent option:checked", "support draft")
	send(t, p, "@error model_error")
	p.See("#state", "failed")
	p.See("#sessions [aria-current] .is-bad", "Failed")
	if got, want := w.asked(t), "default 1, support 1, support 0, support 0"; got != want {
		t.Errorf("the messages went to %s, want %s", got, want)
	}
	viewer := w.signIn(t, account.NewUser{Email: "viewer@halden.example"}, apikey.Viewer).Go(w.URL + "/w/demo/chat")
	if got := find(t, viewer, "#agent").MustEval(`function () { return this.textContent; }`).Str(); strings.Contains(got, "draft") ||
		!strings.Contains(got, "support v1") {
		t.Errorf("a viewer can choose %q", got)
	}
	same := p.MustEval(`async (module) => {
		const { createParser } = await import(module);
		const text = "\uFEFFretry: 5\r\n: ping\nevent: text\rid: 7\ndata: a\r\ndata:  b\n\nid: 8\ndata\n\nevent: lost";
		for (let at = 0; at <= text.length; at++) {
			const got = [];
			const parse = createParser({ frame: (f) => got.push(f.event, f.id, f.data), retry: (ms) => got.push(ms), comment: () => got.push("ping") });
			parse(text.slice(0, at));
			parse(text.slice(at));
			if (got.join("|") !== "5|ping|text|7|a\n b|message|8|") return at + ": " + got.join("|");
		}
		return "";
	}`, w.app.assets.path("stream.js"))
	if same.Str() != "" {
		t.Errorf("a stream that is split at byte %s", same.Str())
	}
}

// makeAgents creates an agent with a draft.
func (w *world) makeAgents(t *testing.T) {
	t.Helper()
	e := agent.Edit{Workspace: w.Workspace.ID, Name: "support", Author: "test"}
	if _, err := w.Agents.Create(t.Context(), e, agent.Defaults(), ""); err != nil {
		t.Fatal(err)
	}
	_, err := w.Agents.SaveDraft(t.Context(), e, func(d agent.Definition) (agent.Definition, error) {
		d.Instructions = "Help."
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asked lists the agents of the turns with the numbers of their versions, 0 being a draft.
func (w *world) asked(t *testing.T) (list string) {
	t.Helper()
	err := w.Pool.QueryRow(t.Context(), `SELECT string_agg(agent || ' ' || agent_version, ', ' ORDER BY created_at) FROM turns`).Scan(&list)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// hostile is the input of a call with everything that a card must not hide.
const hostile = `{"url":"https://user@evil.example\\@good.example/x?to=https://two.example","title":"billed \u202etwice",` +
	`"body":"first\nurl: https://fake.example\n<b onclick=alert(1)>","n":5,"five":"5","list":[1,{"a":"b"}]}`

// TestApprovals answers requests in each of the ways, in the playground and in the inbox.
func TestApprovals(t *testing.T) {
	t.Parallel()
	w := playWorld(t, time.Minute)
	p := w.openPlay(t, "chat")
	send(t, p, "@say Before it.")
	p.See("#state", "done")
	send(t, p, "@say I touch it.\n@call touch "+hostile+"\n@say Touched.")
	p.See("#state", "waiting for approval")
	p.MustReload().MustWaitLoad()
	p.See(".ask h2", "Approval needed")
	p.See("#state", "waiting for approval")
	find(t, p, "[aria-label=Answer] [aria-label='Good answer']")
	if carets := p.MustEval(`() => [...document.querySelectorAll(".caret")].filter((c) => c.checkVisibility()).length`).Int(); carets != 0 {
		t.Errorf("%d carets in an answer that ended and one that waits", carets)
	}
	find(t, p, ".ask[data-armed]")
	inert := p.MustEval(`() => {
		const card = document.querySelector(".ask");
		dispatchEvent(new Event("blur"));
		card.querySelector("[value=allow]").click();
		return !("armed" in card.dataset) && !card.querySelector("[aria-busy=true]");
	}`)
	if !inert.Bool() {
		t.Error("the card can be answered while its tab has no focus")
	}
	p.MustEval(`() => { dispatchEvent(new Event("focus")); }`)
	find(t, p, ".ask[data-armed]")
	p.Review("chat-approval")
	p.Size(390, 800)
	find(t, p, ".ask[data-armed] [value=allow]").MustScrollIntoView()
	p.Size(1280, 600)
	if bar := p.MustEval(`() => getComputedStyle(document.querySelector(".nav")).scrollbarWidth`).Str(); bar != "none" {
		t.Errorf("the scrollbar of the narrow navigation covers the count of approvals: %s", bar)
	}
	p.Size(1280, 800)

	in := w.openPlay(t, "sessions/"+path.Base(p.Path()))
	in.See(".stat", "Waiting")
	if wide := in.MustEval(`() => [...document.querySelectorAll(".stat")].filter((s) => s.scrollWidth > s.clientWidth).map((s) => s.textContent).join()`).
		Str(); wide != "" {
		t.Errorf("the figures %q are wider than their places", wide)
	}
	in.Go(w.URL + "/w/demo/approvals")
	in.See(".ask h2", "Approval needed")
	find(t, in, ".ask-f").MustScrollIntoView()
	find(t, in, ".ask[data-armed]")
	in.Review("approvals")
	there, here := find(t, p, ".ask .ops").MustText(), find(t, in, ".ask .ops").MustText()
	if there != here {
		t.Errorf("the cards differ:\n%s\n%s", there, here)
	}
	t.Log(here)

	find(t, p, ".ask[data-armed] [value=allow]").MustEval(`function () { this.click(); this.click(); }`)
	p.See(".asked b", "Allowed")
	p.See(".asked", "by Anna Lindqvist")
	p.See(".prose", "Touched.")
	in.See(".asked", "Answered in another client")
	in.MustWait(`() => document.querySelector(".tabs .count").hidden`)
	p.Review("chat-allowed")
}

// TestApprovalsInOtherWays denies by keyboard, lets a request expire, and answers without
// JavaScript.
func TestApprovalsInOtherWays(t *testing.T) {
	t.Parallel()
	w := playWorld(t, time.Minute)
	p := w.openPlay(t, "chat")
	send(t, p, "@call touch {\"n\":1}\n@call touch {\"n\":2}\n@say Over.")
	find(t, p, ".ask[data-armed]")
	find(t, p, "#log").MustFocus()
	p.Keyboard.MustType(input.KeyG, input.KeyA)
	find(t, p, ".ask:focus")
	p.Keyboard.MustType(input.KeyD)
	p.See(".asked[data-status=denied]", "by Anna Lindqvist")

	find(t, p, ".ask[data-id]")
	plain := w.openPlay(t, "approvals")
	sent := plain.MustWaitNavigation() // form.submit runs no handlers: this is the form of a page without scripts
	find(t, plain, ".ask form").MustEval(`function () {
		this.append(Object.assign(document.createElement("input"), { name: "decision", value: "deny" }), Object.assign(document.createElement("input"), { name: "reason", value: "Not today." }));
		this.submit();
	}`)
	sent()
	plain.See("[role=status]", "Denied by Anna Lindqvist")
	p.MustWait(`() => document.querySelectorAll(".asked[data-status=denied]").length === 2`)
	p.See(".prose", "Over.")

	send(t, p, "@call touch {\"n\":3}")
	if _, err := w.Pool.Exec(t.Context(), `UPDATE approvals SET expires_at = clock_timestamp() WHERE id = $1`, w.pending(t, p)); err != nil {
		t.Fatal(err)
	}
	p.See(".asked[data-status=expired]", "without an answer")

	send(t, p, "@call bash {\"command\":\"git status\"}\n@call bash {\"command\":\"git log\"}")
	find(t, p, ".ask[data-armed] [value=allow]").MustClick()
	p.MustWait(`() => document.querySelectorAll(".asked[data-status=allowed]").length === 1`)
	find(t, p, ".ask[data-id] [name=always]").MustClick()
	find(t, p, ".ask [name=pattern]").MustSelectAllText().MustInput("bash(git log)")
	p.See(".ask [data-preview]", "It covers 1 of the 2 calls of bash in the last 30 days")
	find(t, p, ".ask .why summary").MustClick()
	find(t, p, ".ask [name=reason]").MustInput("Not on Mondays.")
	find(t, p, ".ask[data-armed] [value=deny]").MustClick()
	p.See(".asked[data-status=denied]:last-of-type", "“Not on Mondays.”")
}

// gitTool is a tool whose calls the allow-list has patterns for.
type gitTool struct{}

func (gitTool) Spec() tool.Spec {
	return tool.Spec{Name: "bash", Description: "Runs a command.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: true}
}

func (gitTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Output: "Clean."}, nil
}

// pending returns the id of the request whose card is on the page.
func (w *world) pending(t *testing.T, p *browser.Page) string {
	t.Helper()
	id, err := find(t, p, ".ask[data-id]").Attribute("data-id")
	if err != nil || id == nil {
		t.Fatal(err)
	}
	return *id
}

// TestSecretLeavesNoTrace provides a secret. No node, attribute, event or storage has its value.
func TestSecretLeavesNoTrace(t *testing.T) {
	t.Parallel()
	const value = "hush-7c1f0a4be2"
	w := playWorld(t, time.Minute)
	p := w.openPlay(t, "chat")
	if _, err := w.Vault.Register(t.Context(), w.Workspace.ID, vault.Registration{Name: "CRM_TOKEN", Hosts: []string{"crm.example"}},
		"test"); err != nil {
		t.Fatal(err)
	}
	send(t, p, `@call request_secret {"key_name":"CRM_TOKEN","reason":"I need the key of the CRM."}`+"\n@say Thanks.")
	p.See(".ask.secret h2", "Secret requested")
	find(t, p, ".ask.secret[data-armed]")
	p.Review("chat-secret")
	find(t, p, ".ask.secret[data-armed]")
	find(t, p, ".ask.secret input[type=password]").MustInput(value)
	p.Keyboard.MustType(input.Enter)
	p.See(".asked[data-status=provided]", "by Anna Lindqvist")
	p.See("#state", "done")
	for _, row := range p.MustElements(".ev summary") {
		row.MustClick()
	}
	found := p.MustEval(`(value) => [document.documentElement.outerHTML, document.documentElement.innerText,
		JSON.stringify({...localStorage, ...sessionStorage}), ...[...document.querySelectorAll("input, textarea")].map((i) => i.value)].some((s) => s.includes(value))`, value)
	if found.Bool() {
		t.Error("the page has the value")
	}
	var stored bool
	if err := w.Pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM events WHERE data::text LIKE '%' || $1 || '%')`,
		value).Scan(&stored); err != nil || stored {
		t.Errorf("an event has the value: %v", err)
	}
}

// TestReloadAndDropMidStream reloads the page and drops its connection while an answer arrives. The
// text on the page equals the database's.
func TestReloadAndDropMidStream(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 0)
	p := w.openPlay(t, "chat")
	send(t, p, "@say # Title with **bold**\n@call touch {}\n@text 200 deltas of 24 bytes at 20/s\n@call touch {}\n@say The end.")
	p.See(".prose h3", "Title")
	find(t, p, ".prose p")
	find(t, p, "#drop:not([disabled])").MustClick()
	p.See("#state", "reconnecting")
	p.See("#live", "live")
	wait := p.MustWaitNavigation()
	p.MustReload()
	wait()
	find(t, p, ".prose p")
	p.Shot("chat-streaming")
	p.See("#state", "done")
	w.equal(t, p)
}

// equal compares each answer on the page with the database's, as text and as it is rendered. Events
// of ended turns can still be replayed: it waits for their text.
func (w *world) equal(t *testing.T, p *browser.Page) {
	t.Helper()
	rows, err := w.Pool.Query(t.Context(),
		`SELECT turn_id::text, coalesce(content, '') FROM messages WHERE role = 'assistant' ORDER BY first_seq`)
	if err != nil {
		t.Fatal(err)
	}
	type message struct{ turn, content string }
	want, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m message, err error) { return m, row.Scan(&m.turn, &m.content) })
	if err != nil || len(want) == 0 {
		t.Fatalf("%d answers, %v", len(want), err)
	}
	for _, m := range want {
		got := find(t, p, "#turn-"+m.turn).MustEval(`async function (module, content) {
			const { render } = await import(module);
			const fresh = document.createElement("div");
			fresh.append(...render(content));
			for (const end = performance.now() + 30_000; ; await new Promise((next) => setTimeout(next, 20))) {
				const shown = [...this.querySelectorAll(".prose")].map((n) => n.textContent).join("");
				const same = shown === fresh.textContent || this.querySelectorAll(".prose").length > 1;
				if (same && this.source === content || performance.now() > end) return { source: this.source, same };
			}
		}`, w.app.assets.path("markdown.js"), m.content)
		if source := got.Get("source").Str(); source != m.content || !got.Get("same").Bool() {
			t.Errorf("turn %s shows %d characters, the database has %d; rendered alike: %v", m.turn, len(source), len(m.content), got.Get("same"))
		}
	}
}

// corpus are texts that become a script if a page treats them as HTML, as a URL or as an attribute.
var corpus = []string{
	`<img src=x onerror="hacked=1">`, `<script>hacked=1</script>`, `"><svg onload=hacked=1>`, `[a](javascript:hacked=1)`,
	`![a](javascript:hacked=1)`,
	`<javascript:hacked=1>`, `[a](data:text/html,<script>hacked=1</script>)`, `<a href="&#106;avascript:hacked=1">a</a>`,
	"`</code><img src=x onerror=hacked=1>`",
	`<iframe srcdoc="<script>parent.hacked=1</script>">`, `<style>*{display:none}</style>`, `![x](http://evil.example/pixel.png)`,
	`<form action=//evil.example><button>Allow</button>`,
	`<details open ontoggle=hacked=1>`, `<template id="icon-copy"><img src=x onerror=hacked=1></template>`, `{{.}} ${hacked=1}`,
}

// TestHostileTexts puts the corpus into everything that a user, a model or a tool can fill.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	w := playWorld(t, time.Minute)
	p := w.openPlay(t, "chat")
	all := strings.Join(corpus, " ")
	quoted, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	lines := "@say " + strings.Join(corpus, "\n@say ")
	text := lines + "\n@say | " + strings.ReplaceAll(all, "|",
		"") + " |\n@call attach_file {\"filename\":\"<img src=x onerror=hacked=1>.txt\",\"content\":" + string(quoted) +
		"}\n@call touch {\"<b>name</b>\":" + string(quoted) + "}\n@say Over."
	find(t, p, "#msg").MustEval(`function (text) { this.value = text; }`, text)
	find(t, p, "#send").MustClick()
	find(t, p, ".ask-f").MustScrollIntoView()
	find(t, p, ".ask[data-armed] [value=allow]").MustClick()
	p.See(".prose", "Over.")
	p.See("#state", "done")
	for _, row := range p.MustElements(".tool summary, .ev summary") {
		row.MustEval(`function () { this.click(); }`)
	}
	check := func(where string) {
		t.Helper()
		if hacked := p.MustEval(`() => typeof hacked !== "undefined"`).Bool(); hacked {
			t.Errorf("%s: a script ran", where)
		}
		if n := p.MustEval(
			`() => document.querySelectorAll(".msgs img, .msgs script, .msgs iframe, .msgs style, .msgs svg[onload], .msgs form, ` +
				`.ops img, [href^=javascript], [href^=data]").length`).Int(); n > 0 {
			t.Errorf("%s: %d elements come from texts", where, n)
		}
	}
	check("playground")
	p.Shot("chat-hostile")
	p.MustReload().MustWaitLoad()
	p.See(".prose", "Over.")
	check("playground again")
	p.Go(w.URL + "/w/demo/approvals?status=answered")
	p.See(".rows b", "Allowed")
	check("inbox")
	p.Review("approvals-answered")
}

// TestComposerExplainsMistakes starts a skill from its form, with mistakes first, and sends a schema
// and a user.
func TestComposerExplainsMistakes(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 0)
	doc := "---\nname: monthly_report\ndescription: Drafts a report for one month.\ninterface:\n  inputs:\n    month: {type: string, " +
		"format: month, required: true}\n" +
		"    team: {type: enum, values: [sales, support], required: true}\n    highlights: {type: array, items: {type: string}}\n---\nDraft it.\n"
	if _, err := w.Skills.Push(t.Context(), w.Workspace.ID, skill.Upload{Document: doc, By: "test"}); err != nil {
		t.Fatal(err)
	}
	p := w.openPlay(t, "chat")
	p.Review("chat-empty")
	p.Allow("400 (Bad Request)")
	find(t, p, "#skill-list button")
	find(t, p, "#msg").MustFocus()
	p.Keyboard.MustType(input.Slash)
	p.See("#skill-list button", "monthly_report").MustClick()
	find(t, p, "#send").MustClick()
	p.See("#p-skill .err", "month is required")
	p.Review("chat-skill-error")
	find(t, p, "#in-month").MustEval(`function () { this.value = "2026-01"; }`)
	find(t, p, "#in-highlights").MustInput("One\nTwo")
	find(t, p, "#show-user").MustClick()
	find(t, p, "#user").MustInput("u-2210")
	find(t, p, "#send").MustClick()
	p.See(".msg-u", "/monthly_report (month, team, highlights)")
	p.See("#state", "done")
	var user string
	if err := w.Pool.QueryRow(t.Context(), `SELECT coalesce(end_user, '') FROM sessions`).Scan(&user); err != nil || user != "u-2210" {
		t.Errorf("the session is of %q, %v", user, err)
	}
	find(t, p, "#show-schema").MustClick()
	find(t, p, "#schema").MustInput(`{"type":"nonsense"}`)
	find(t, p, "#msg").MustInput("Hello")
	find(t, p, "#send").MustClick()
	p.MustWait(`() => !document.getElementById("schema-err").hidden`)
	if got := find(t, p, "#msg").MustEval(`function () { return this.value; }`).Str(); got != "Hello" {
		t.Errorf("the rejected message is %q", got)
	}
}
