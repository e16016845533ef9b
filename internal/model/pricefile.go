package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxRate is the largest price of a million tokens, in US dollars.
const MaxRate = 1e6

// pricedModel is a model in a file of prices. JSON is YAML, too.
type pricedModel struct {
	Name      string   `yaml:"name"`
	Input     *float64 `yaml:"input_usd"`
	Cached    *float64 `yaml:"cached_input_usd"` // default: the price of input
	Written   *float64 `yaml:"cache_write_usd"`  // default: the price of input
	Output    *float64 `yaml:"output_usd"`
	Window    int      `yaml:"context_window"`
	MaxOutput int      `yaml:"max_output"`
	Date      string   `yaml:"date"`
}

// ReadCatalog reads a file of prices in YAML or JSON over the catalog of this release. Its error
// lists every problem of the file.
func ReadCatalog(path string) (*Catalog, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Models []pricedModel `yaml:"models"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(source))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is not a file of prices: %s", path, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n ", ""))
	}
	if len(file.Models) == 0 {
		return nil, fmt.Errorf("%s lists no models; it is like models: [{name: openai/gpt-5, input_usd: 1.25, output_usd: 10}]", path)
	}
	var entries []Entry
	var wrong []error
	seen := make(map[string]bool)
	for i, m := range file.Models {
		switch problem := m.problem(); {
		case problem != "":
			wrong = append(wrong, fmt.Errorf("%s, model %d (%.80q): %s", path, i+1, m.Name, problem))
		case seen[m.Name]:
			wrong = append(wrong, fmt.Errorf("%s, model %d: %q is listed twice", path, i+1, m.Name))
		default:
			entries = append(entries, m.entry())
		}
		seen[m.Name] = true
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return NewCatalog(entries), nil
}

var dateShape = regexp.MustCompile(`^\d{4}-\d{2}(-\d{2})?$`)

// problem describes the first problem of a model, or returns "".
func (m pricedModel) problem() string {
	provider, name, _ := strings.Cut(m.Name, "/")
	if provider == "" || name == "" || len(m.Name) > 200 {
		return "its name is not PROVIDER/NAME or PROVIDER/*"
	}
	for _, rate := range []*float64{m.Input, m.Cached, m.Written, m.Output} {
		if rate != nil && !(*rate >= 0 && *rate <= MaxRate && !math.IsInf(*rate, 0)) {
			return fmt.Sprintf("a price is a number of US dollars from 0 to %.0f", MaxRate)
		}
	}
	switch {
	case (m.Input == nil) != (m.Output == nil) || m.Input == nil && (m.Cached != nil || m.Written != nil):
		return "a price has input_usd and output_usd"
	case m.Window < 0 || m.MaxOutput < 0:
		return "context_window and max_output are numbers of tokens"
	case m.Date != "" && !dateShape.MatchString(m.Date):
		return "its date is not like 2026-03-31"
	}
	return ""
}

func (m pricedModel) entry() Entry {
	e := Entry{Name: m.Name, Window: m.Window, MaxOutput: m.MaxOutput, Source: "PARLEY_PRICES", Date: m.Date}
	if m.Input != nil {
		e.Rates = &Rates{Input: *m.Input, CachedInput: *orElse(m.Cached, m.Input), Output: *m.Output, CacheWrite: *orElse(m.Written, m.Input)}
	}
	return e
}

func orElse(value, other *float64) *float64 {
	if value != nil {
		return value
	}
	return other
}
