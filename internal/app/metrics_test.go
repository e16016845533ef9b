package app_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// fetch returns the body of a page.
func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// TestMetricsOfAMessage sends a message and scrapes the replica before and during an outage of its
// database. Neither metrics nor profiles are on the public port.
func TestMetricsOfAMessage(t *testing.T) {
	t.Parallel()
	provider := modeltest.OpenAI(modeltest.Say("canary-", "answer"))
	t.Cleanup(provider.Close)
	dsn, log := dbtest.DSN(t), &lines{}
	b := newBridge(t, dsn)
	at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+b.through, "PARLEY_LISTEN=127.0.0.1:0",
		"PARLEY_METRICS_LISTEN=127.0.0.1:0",
		"OPENAI_API_KEY=canary-provider-key", "OPENAI_BASE_URL="+provider.URL+"/v1", "PARLEY_MODEL=openai/gpt-5-mini")
	if err != nil {
		t.Fatal(err)
	}
	slug, _, key := newKey(t, dsn)
	if status, answer := call(t, key, "req-1", "POST", at+"/api/v1/workspaces/"+slug+"/messages",
		`{"command":"canary-message"}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	until(t, func() bool { return len(log.find("request", "request", "req-1")) == 1 })
	until(t, func() bool { return len(log.find("turn finished")) == 1 })
	until(t, func() bool { return len(log.find("serving metrics")) == 1 })
	observer := "http://" + log.find("serving metrics")[0]["address"].(string)
	status, text := fetch(t, observer+"/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		`parley_http_requests_total{method="POST",route="/api/v1/workspaces/{id}/messages",status="200"} 1`,
		`parley_turns_started_total 1`, `parley_turns_finished_total{error="none",state="completed"} 1`,
		`parley_turn_first_text_seconds_count 1`, `parley_turns_running 0`,
		`parley_model_calls_total{outcome="ok",provider="openai"} 1`, `parley_model_tokens_total{kind="input",provider="openai"} 10`,
		`parley_model_calls_running 0`,
		`parley_streams 0`, `parley_streams_closed_total{reason="finished"} 1`, `parley_text_deltas_total`,
		`parley_append_duration_seconds_count`, `parley_delivery_lag_seconds_count`,
		`parley_database_up 1`, `parley_database_turns{state="queued"} 0`, `parley_replicas 1`, `parley_listening 1`,
		`parley_river_jobs{state="discarded"} 0`, `go_goroutines`, `parley_build_info{`,
		`parley_chain_lag_seconds `, `parley_audit_head_lag_seconds 0`, `parley_turn_takeovers_total{reason="dead"} 0`,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("missing: %s", want)
		}
	}
	for _, secret := range []string{"canary", key, slug + "\""} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics have %q", secret)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "parley_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if status, body := fetch(t, observer+"/debug/pprof/goroutine?debug=1"); status != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("pprof: %d", status)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if status, _ := fetch(t, at+path); status != 404 {
			t.Errorf("the public port answers %d for %s", status, path)
		}
	}
	b.proxy.Refuse(true)
	b.proxy.Cut()
	if status, text := fetch(t, observer+"/metrics"); status != 200 || !strings.Contains(text, "\nparley_database_up 0") ||
		!strings.Contains(text, "\nparley_turns_started_total 1") {
		t.Errorf("during an outage: %d", status)
	}
	b.proxy.Refuse(false)
}

var description = regexp.MustCompile(
	`^Desc\{fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// registered returns the metrics of the service with their help and labels, by name.
func registered(t *testing.T) map[string][2]string {
	t.Helper()
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		app.RegisteredMetrics().Describe(ch)
	}()
	all := make(map[string][2]string)
	for d := range ch {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		if labels := m[4]; strings.HasPrefix(m[1], "parley_") {
			if m[1] == "parley_build_info" {
				labels = "version,commit"
			}
			all[m[1]] = [2]string{strings.ReplaceAll(labels, ",", ", "), m[2]}
		}
	}
	return all
}

// TestDocumentationListsTheMetrics compares the table of the page with the registry.
func TestDocumentationListsTheMetrics(t *testing.T) {
	t.Parallel()
	const path = "../../docs/reference/metrics.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), "-update` -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- /metrics -->")
	if !ok1 || !ok2 {
		t.Fatalf("%s has lost its markers", path)
	}
	var b strings.Builder
	b.WriteString("| Metric | Labels | Meaning |\n|---|---|---|\n")
	all := registered(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, all[name][0], all[name][1])
	}
	want := head + "-update` -->\n" + b.String() + "<!-- /metrics -->" + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s differs from the code; run go test ./internal/app -update\n%s", path, diff)
	}
}

// TestDashboardAndAlertsNameMetricsThatExist reads the files that operators install, and follows the
// links of the alerts to their runbooks.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	all := registered(t)
	name := regexp.MustCompile(`\bparley_[a-z0-9_]+`)
	for _, path := range []string{"../../deploy/grafana/parley.json", "../../deploy/prometheus/alerts.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := name.FindAllString(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names %d metrics", path, len(found))
		}
		for _, metric := range found {
			base := metric
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if _, ok := all[base]; !ok {
				t.Errorf("%s: there is no metric %s", path, metric)
			}
		}
	}
	alerts, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(alerts), -1)
	if len(names) < 5 {
		t.Errorf("%d alerts", len(names))
	}
	for _, alert := range names {
		if !strings.Contains(string(alerts), "docs/runbooks.md#"+strings.ToLower(alert[1])+"\n") || !strings.Contains(string(page),
			"\n## "+alert[1]+"\n") {
			t.Errorf("%s has no runbook", alert[1])
		}
	}
}
