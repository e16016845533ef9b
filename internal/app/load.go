package app

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/vault"
)

// Sources are the sources of settings: a flag takes precedence over the environment, the
// environment over the file, the file over the default.
type Sources struct {
	Flags   []Flag
	Environ []string // "NAME=value", as from os.Environ
	File    string   // a file of NAME=value lines; "" uses PARLEY_CONFIG
}

// Flag is a command-line flag for a setting.
type Flag struct {
	Name    string // "--listen"
	Setting string // "PARLEY_LISTEN"
	Value   string
}

// ConfigError lists every problem of a configuration.
type ConfigError struct{ Problems []string }

func (e *ConfigError) Error() string { return strings.Join(e.Problems, "\n") }

// Load reads the settings, or fails with a *ConfigError that lists every problem. It checks each
// value; a command checks its other requirements itself.
func Load(src Sources) (Config, error) {
	l := &loader{settings: Documented()}
	environ := l.splitEnviron(src.Environ)
	if path := cmp.Or(src.File, environ["PARLEY_CONFIG"]); path != "" {
		l.readFile(path)
	}
	l.applyLayer(environ, func(string) string { return "environment" })
	for _, f := range src.Flags {
		l.setValue(f.Setting, f.Value, "flag "+f.Name)
	}

	var cfg Config
	values := make(map[string]string, len(l.settings))
	for i, s := range l.settings {
		if len(s.choice) > 0 && !slices.Contains(s.choice, s.raw) {
			l.addProblem("%s is %q (%s); it takes %s.", s.Name, s.raw, s.Source, strings.Join(s.choice, " or "))
		}
		l.settings[i].Value = s.shownValue()
		values[s.Name] = s.raw
	}
	if unreadable := l.addParseErrors(env.ParseWithOptions(&cfg, env.Options{Environment: values})); len(unreadable) > 0 {
		for _, s := range unreadable { // the other checks use the default: each value has one problem
			values[s.Name] = s.Default
		}
		_ = env.ParseWithOptions(&cfg, env.Options{Environment: values})
	}
	cfg.URL, cfg.APIKey = strings.TrimSpace(cfg.URL), Secret(strings.TrimSpace(string(cfg.APIKey))) // files and commands add white space
	cfg.settings = l.settings
	l.problems = append(l.problems, cfg.listProblems()...)
	if cfg.Prices != "" {
		var err error
		if cfg.catalog, err = model.ReadCatalog(cfg.Prices); err != nil {
			for line := range strings.Lines(err.Error()) {
				l.addProblem("PARLEY_PRICES: %s.", strings.TrimSpace(line))
			}
		}
	}
	if len(l.problems) > 0 {
		return cfg, &ConfigError{l.problems}
	}
	return cfg, nil
}

// loader collects values and problems.
type loader struct {
	settings []Setting
	problems []string
}

func (l *loader) addProblem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// splitEnviron splits the environment and finds unknown names with our prefix.
func (l *loader) splitEnviron(list []string) map[string]string {
	values := make(map[string]string)
	for _, line := range list {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
		if strings.HasPrefix(name, "PARLEY_") && name != "PARLEY_CONFIG" && !strings.HasPrefix(name, "PARLEY_TEST_") {
			l.isKnown(name, "environment")
		}
	}
	return values
}

// readFile reads a configuration file, in which every name must be a setting.
func (l *loader) readFile(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		l.addProblem("The configuration file cannot be read: %v.", err)
		return
	}
	lines, err := parseEnvFile(string(text))
	if err != nil {
		l.addProblem("%s, %v.", path, err)
	}
	values := make(map[string]string, len(lines))
	at := make(map[string]int, len(lines))
	for _, line := range lines {
		if l.isKnown(line.name, fmt.Sprintf("%s:%d", path, line.n)) {
			values[line.name], at[line.name] = line.value, line.n
		}
	}
	l.applyLayer(values, func(name string) string { return fmt.Sprintf("%s:%d", path, at[name]) })
}

// applyLayer applies one source. An empty value counts as not set, and NAME_FILE may name a file
// that contains a secret.
func (l *loader) applyLayer(values map[string]string, source func(name string) string) {
	for _, s := range l.settings {
		value, path := values[s.Name], values[s.Name+"_FILE"]
		switch {
		case value != "" && path != "" && s.Secret:
			l.addProblem("%s and %s_FILE are both set (%s); set one.", s.Name, s.Name, source(s.Name))
		case value != "":
			l.setValue(s.Name, value, source(s.Name))
		case path != "" && s.Secret:
			read := os.ReadFile
			if s.keys {
				read = vault.ReadPrivate
			}
			text, err := read(path)
			if err != nil {
				l.addProblem("%s_FILE (%s): %v.", s.Name, source(s.Name+"_FILE"), err)
				continue
			}
			l.setValue(s.Name, strings.TrimRight(string(text), "\r\n"), "file "+path)
		}
	}
}

func (l *loader) setValue(name, value, source string) {
	for i := range l.settings {
		if l.settings[i].Name == name {
			l.settings[i].raw, l.settings[i].Source = value, source
		}
	}
}

// isKnown reports whether a name is a setting, and records a problem if it is not.
func (l *loader) isKnown(name, where string) bool {
	var names []string
	for _, s := range l.settings {
		names = append(names, s.Name)
		if s.Secret {
			names = append(names, s.Name+"_FILE")
		}
	}
	if slices.Contains(names, name) {
		return true
	}
	hint := "`parley config list` lists all."
	// The prefix that most names share does not make them similar.
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = strings.TrimPrefix(n, "PARLEY_")
	}
	if near := search.Nearest(strings.TrimPrefix(name, "PARLEY_"), parts, 1); len(near) > 0 {
		hint = fmt.Sprintf("Did you mean %s?", names[slices.Index(parts, near[0])])
	}
	l.addProblem("%s (%s) is not a setting. %s", name, where, hint)
	return false
}

// addParseErrors turns the errors of the env package into sentences with our names. It returns the
// settings that cannot be read.
func (l *loader) addParseErrors(err error) (unreadable []Setting) {
	if err == nil {
		return nil
	}
	all := []error{err}
	if agg, ok := errors.AsType[env.AggregateError](err); ok {
		all = agg.Errors
	}
	for _, err := range all {
		p, ok := errors.AsType[env.ParseError](err)
		if !ok {
			l.addProblem("%v.", err)
			continue
		}
		name := fieldSetting(p.Name)
		for _, s := range l.settings {
			if s.Name == name {
				l.addProblem("%s is %q (%s): %s", name, s.Value, s.Source, hintFor(p.Type))
				unreadable = append(unreadable, s)
			}
		}
	}
	return unreadable
}
