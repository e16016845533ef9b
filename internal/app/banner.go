package app

import (
	"fmt"
	"io"
	"time"
)

// banner prints the progress of the start in development mode. Otherwise it is silent.
type banner struct {
	w     io.Writer
	began time.Time
	how   string // how the database was found
	since time.Time
}

func (b *banner) begin(opt Options) {
	b.w, b.began = io.Discard, time.Now()
	b.since = b.began
	if opt.DevDir == "" {
		return
	}
	b.w = opt.Out
	fmt.Fprintf(b.w, "parley %s  dev mode: data in ./%s (delete with `parley dev reset`)\n", ThisBuild().Version, DevDir)
}

// line prints one step; took 0 omits the time.
func (b *banner) line(label, text string, took time.Duration) {
	if took == 0 {
		fmt.Fprintf(b.w, "  %-10s %s\n", label, text)
		return
	}
	fmt.Fprintf(b.w, "  %-10s %-56s %5.1f s\n", label, text, took.Seconds())
}

// progress prints the progress of a slow part of a step.
func (b *banner) progress(text string) { b.line("", text, 0) }

func (b *banner) database(version string, _ time.Duration) {
	b.line("database", "PostgreSQL "+version+" "+b.how, time.Since(b.since))
}

func (b *banner) model(name, because string) {
	if name != builtinGuide {
		b.line("model", fmt.Sprintf("%s (%s)", name, because), 0)
		return
	}
	b.line("model", name+" - offline, free, deterministic", 0)
	if because != "PARLEY_MODEL" {
		b.line("", "(set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST for a real one)", 0)
	}
}

func (b *banner) ready(s *service) {
	if s.DevDir == "" {
		return
	}
	if s.server != nil {
		b.line("api", s.url, 0)
	}
	fmt.Fprintf(b.w, "  ready in %.1f s. Press Ctrl-C to stop.\n", time.Since(b.began).Seconds())
	if s.server == nil {
		return
	}
	fmt.Fprintf(b.w, `
In a second terminal:
  source %s/dev.env
  curl -N $PARLEY_URL/api/v1/workspaces/%s/messages -H "Authorization: Bearer $PARLEY_API_KEY" \
       -H 'Content-Type: application/json' -d '{"command":"What can you do?"}'

`, DevDir, demoWorkspace)
}
