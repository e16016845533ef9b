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
	"time"

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
	Window    *int     `yaml:"context_window"`
	MaxOutput *int     `yaml:"max_output"`
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
		return nil, fmt.Errorf("%s is not a file of prices: %s", path, describeYAML(err))
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

// What the YAML library says of a value that does not fit, with names of Go.
var (
	unknownField = regexp.MustCompile(`^(line \d+: )field (\S+) not found in type .*`)
	openBlock    = regexp.MustCompile(`^(line \d+): (did not find expected )`) // the line where the list or object begins
	wrongValue   = regexp.MustCompile("^(line \\d+: )cannot unmarshal !!(\\S+)(?: `(.*)`)? into (.*)")
)

// describeYAML describes an error of the YAML library in the terms of the file.
func describeYAML(err error) string {
	types, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return openBlock.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "$1 or after it: $2")
	}
	list := make([]string, len(types.Errors))
	for i, text := range types.Errors {
		if m := unknownField.FindStringSubmatch(text); m != nil {
			list[i] = fmt.Sprintf(
				"%s%q is not a field; a model has name, input_usd, cached_input_usd, cache_write_usd, output_usd, context_window, "+
					"max_output and date", m[1], m[2])
		} else if m := wrongValue.FindStringSubmatch(text); m != nil {
			list[i] = m[1] + valueOf(m[2], m[3]) + " is not " + kindOf(m[4])
		} else {
			list[i] = text
		}
	}
	return strings.Join(list, "; ")
}

// valueOf returns a YAML value as its author knows it.
func valueOf(tag, value string) string {
	switch {
	case value != "":
		return fmt.Sprintf("%q", value)
	case tag == "map":
		return "an object"
	case tag == "seq":
		return "a list"
	}
	return "the value"
}

// kindOf names the value that a Go type stands for.
func kindOf(goType string) string {
	switch {
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case goType == "string":
		return "text"
	case strings.HasPrefix(goType, "[]"):
		return "a list of models"
	}
	return "an object with fields"
}

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
	case m.Window != nil && *m.Window < 1 || m.MaxOutput != nil && *m.MaxOutput < 1:
		return "context_window and max_output are numbers of tokens, from 1"
	case m.Date != "" && !isDate(m.Date):
		return fmt.Sprintf("its date %.40q is not a day such as 2026-03-31 or a month such as 2026-03", m.Date)
	}
	return ""
}

// isDate reports whether a text is a day or a month of the calendar.
func isDate(text string) bool {
	_, noDay := time.Parse(time.DateOnly, text)
	_, noMonth := time.Parse("2006-01", text)
	return noDay == nil || noMonth == nil
}

func (m pricedModel) entry() Entry {
	e := Entry{Name: m.Name, Window: *orElse(m.Window, new(0)), MaxOutput: *orElse(m.MaxOutput, new(0)), Source: "PARLEY_PRICES", Date: m.Date}
	if m.Input != nil {
		e.Rates = &Rates{Input: *m.Input, CachedInput: *orElse(m.Cached, m.Input), Output: *m.Output, CacheWrite: *orElse(m.Written, m.Input)}
	}
	return e
}

func orElse[T any](value, other *T) *T {
	if value != nil {
		return value
	}
	return other
}
