package app_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/app"
)

var update = flag.Bool("update", false, "rewrite generated documentation")

func TestConfigDefaultsAreValid(t *testing.T) {
	t.Parallel()
	cfg, err := app.Load(app.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Listen != ":8080" || cfg.TurnLease != 10*time.Second || cfg.LogLevel != slog.LevelInfo || !cfg.HTTP {
		t.Errorf("defaults: %+v", cfg)
	}
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	t.Parallel()
	file := write(t, "parley.env", "# a comment\nexport PARLEY_LISTEN=':1'\nPARLEY_WORKERS=1\nPARLEY_TURN_LEASE=1s\n")
	cfg, err := app.Load(app.Sources{
		File:    file,
		Environ: []string{"PARLEY_LISTEN=:2", "PARLEY_WORKERS=2", "HOME=/"},
		Flags:   []app.Flag{{Name: "--listen", Setting: "PARLEY_LISTEN", Value: ":3"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range cfg.Settings() {
		got[s.Name] = s.Value + " " + strings.TrimPrefix(s.Source, file)
	}
	for name, want := range map[string]string{
		"PARLEY_LISTEN": ":3 flag --listen", "PARLEY_WORKERS": "2 environment", "PARLEY_TURN_LEASE": "1s :4", "PARLEY_MIGRATE": "auto default",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	if cfg.Listen != ":3" || cfg.Workers != 2 || cfg.TurnLease != time.Second {
		t.Errorf("loaded %s %d %s", cfg.Listen, cfg.Workers, cfg.TurnLease)
	}
}

func TestConfigReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := app.Load(app.Sources{Environ: []string{
		"PARLEY_LISTNE=:1", "PARLEY_FOO=1", "PARLEY_LISTEN=8080", "PARLEY_WORKERS=many", "PARLEY_MIGRATE=maybe", "PARLEY_TURN_LEASE=1ms",
		"PARLEY_REPLAY_WINDOW=2d", "PARLEY_AUDIT_RETENTION=1d",
		"PARLEY_MODEL=opnai/gpt-5", "PARLEY_EGRESS_ALLOW=mirror.corp, https://a.corp,10.0.0.0/33",
		"PARLEY_TRUSTED_PROXIES=10.0.0.1,proxy.corp",
		"PARLEY_CORS_ORIGINS=https://app.example,http://localhost:3000,*,https://b.example/,https://c.example:443," +
			"https://*.d.example,HTTPS://e.example,null",
		"PARLEY_POSTGRES_REPOSITORY=mirror.corp", "PARLEY_AUDIT_HEADS=heads.jsonl,ftp://x",
		"PARLEY_API_KEY=a", "PARLEY_API_KEY_FILE=b", "DATABASE_URL_FILE=/does/not/exist",
	}})
	problems, ok := errors.AsType[*app.ConfigError](err)
	if !ok {
		t.Fatalf("Load: %v", err)
	}
	all := problems.Error()
	for _, want := range []string{
		"PARLEY_LISTNE (environment) is not a setting. Did you mean PARLEY_LISTEN?",
		"PARLEY_FOO (environment) is not a setting. `parley config list` lists all.",
		`PARLEY_LISTEN is "8080": it takes host:port`,
		`PARLEY_WORKERS is "many" (environment): it takes a whole number.`,
		`PARLEY_MIGRATE is "maybe" (environment); it takes auto or check.`,
		`PARLEY_TURN_LEASE is "1ms": it takes 500ms to 10m0s.`,
		`PARLEY_AUDIT_RETENTION is "1d": it takes 2d to 36500d.`,
		"did you mean openai/gpt-5?",
		`PARLEY_EGRESS_ALLOW: "https://a.corp": it`, `; "10.0.0.0/33": it`,
		`PARLEY_TRUSTED_PROXIES: "proxy.corp" is not an address or a range`, "PARLEY_POSTGRES_REPOSITORY takes an address",
		`PARLEY_AUDIT_HEADS: the path "heads.jsonl" is not absolute`, "; ftp:// is not supported",
		`PARLEY_CORS_ORIGINS is "*": it takes origins`, `"https://b.example/"`, `"https://c.example:443"`, `"https://*.d.example"`,
		`"HTTPS://e.example"`, `"null"`,
		"PARLEY_API_KEY and PARLEY_API_KEY_FILE are both set",
		"DATABASE_URL_FILE (environment): open /does/not/exist",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in:\n%s", want, all)
		}
	}
	if strings.Contains(all, "app.example\"") || strings.Contains(all, "localhost:3000\"") {
		t.Errorf("origins are rejected:\n%s", all)
	}
}

// TestInvalidValueIsReportedOnce checks that a value that cannot be read has no second problem, and
// that a problem shows the text that was set.
func TestInvalidValueIsReportedOnce(t *testing.T) {
	t.Parallel()
	_, err := app.Load(app.Sources{Environ: []string{"PARLEY_LOG_LEVEL=loud", "PARLEY_REPLAY_WINDOW=banana", "PARLEY_AUDIT_RETENTION=1h"}})
	problems, ok := errors.AsType[*app.ConfigError](err)
	want := []string{
		`PARLEY_REPLAY_WINDOW is "banana" (environment): it takes a length of time such as 90m, 24h or 400d.`,
		`PARLEY_LOG_LEVEL is "loud" (environment): it takes DEBUG, INFO, WARN or ERROR.`,
		`PARLEY_AUDIT_RETENTION is "1h": it takes 1d to 36500d.`,
	}
	if !ok || !slices.Equal(problems.Problems, want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestSecretsComeFromFilesAndStaySecret(t *testing.T) {
	t.Parallel()
	const key, password = "sk-very-secret", "hunter2"
	cfg, err := app.Load(app.Sources{Environ: []string{
		"OPENAI_API_KEY_FILE=" + write(t, "key", key+"\n"),
		"DATABASE_URL=postgres://me:" + password + "@db/parley?sslpassword=" + password,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.OpenAIKey.Reveal() != key {
		t.Errorf("key from a file = %q", cfg.OpenAIKey.Reveal())
	}
	settings, err := json.Marshal(cfg.Settings())
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("configuration", "key", cfg.OpenAIKey)
	for _, out := range []string{
		string(settings), string(marshalled), log.String(),
		fmt.Sprint(cfg.OpenAIKey), fmt.Sprintf("%+v %#v", cfg.OpenAIKey, cfg.DatabaseURL),
	} {
		if strings.Contains(out, key) || strings.Contains(out, password) {
			t.Errorf("%s contains a secret", out)
		}
	}
	if !strings.Contains(string(settings), "postgres://me:xxxxx@db/parley") {
		t.Errorf("the database address is not readable: %s", settings)
	}
}

func TestDefaultModelFollowsTheKeys(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"": "builtin/guide", "OLLAMA_HOST=x": "ollama/", "OLLAMA_HOST=x ANTHROPIC_API_KEY=k": "anthropic/",
		"ANTHROPIC_API_KEY=k OPENAI_API_KEY=k": "openai/", "OPENAI_API_KEY=k PARLEY_MODEL=ollama/qwen3:4b": "ollama/qwen3:4b",
	} {
		cfg, err := app.Load(app.Sources{Environ: strings.Fields(environ)})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := cfg.DefaultModel(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", environ, got, want)
		}
	}
}

func TestDocumentationListsTheSettings(t *testing.T) {
	t.Parallel()
	const path = "../../docs/reference/configuration.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), "-update` -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- /settings -->")
	if !ok1 || !ok2 {
		t.Fatalf("%s has lost its markers", path)
	}
	want := head + "-update` -->\n" + table(t) + "<!-- /settings -->" + tail
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

func table(t *testing.T) string {
	meanings := fieldComments(t, "config.go", "Config")
	var b strings.Builder
	b.WriteString("| Setting | Default | Meaning |\n|---|---|---|\n")
	section := ""
	for _, s := range app.Documented() {
		if s.Section != section {
			section = s.Section
			fmt.Fprintf(&b, "| **%s** | | |\n", section)
		}
		def := ""
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		name := "`" + s.Name + "`"
		if s.Secret {
			name += " (secret)"
		}
		if meanings[s.Name] == "" {
			t.Errorf("the field of %s has no comment", s.Name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, def, strings.ReplaceAll(meanings[s.Name], "|", `\|`))
	}
	return b.String()
}

// fieldComments returns the comments of the fields of a struct by the settings in their tags.
func fieldComments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, field := range f.Scope.Lookup(name).Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
		if field.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		comments[tag.Get("env")] = strings.Join(strings.Fields(field.Doc.Text()), " ")
	}
	return comments
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
