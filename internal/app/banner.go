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

func (b *banner) printHeader(opt Options) {
	b.w, b.began = io.Discard, time.Now()
	b.since = b.began
	if opt.DevDir == "" {
		return
	}
	b.w = opt.Out
	fmt.Fprintf(b.w, "parley %s  dev mode: data in ./%s (delete with `parley dev reset`)\n", ThisBuild().Version, DevDir)
}

// printStep prints one step; took 0 omits the time.
func (b *banner) printStep(label, text string, took time.Duration) {
	if took == 0 {
		fmt.Fprintf(b.w, "  %-10s %s\n", label, text)
		return
	}
	fmt.Fprintf(b.w, "  %-10s %-56s %5.1f s\n", label, text, took.Seconds())
}

// printProgress prints the progress of a slow part of a step.
func (b *banner) printProgress(text string) { b.printStep("", text, 0) }

func (b *banner) printDatabase(version string, _ time.Duration) {
	b.printStep("database", "PostgreSQL "+version+" "+b.how, time.Since(b.since))
}

func (b *banner) printModel(name, because string) {
	if name != builtinGuide {
		b.printStep("model", fmt.Sprintf("%s (%s)", name, because), 0)
		return
	}
	b.printStep("model", name+" - offline, free, deterministic", 0)
	if because != "PARLEY_MODEL" {
		b.printStep("", "(set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST for a real one)", 0)
	}
}

func (b *banner) printReady(s *service) {
	if s.DevDir == "" {
		return
	}
	if s.server != nil {
		b.printStep("api", s.url, 0)
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
