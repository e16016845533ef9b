// Package toolfile reads the definition of an HTTP tool as administrators write it, in YAML or JSON. It
// does not check the definition.
package toolfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is the definition of one tool.
type file struct {
	Title       string            `yaml:"title"`
	Description string            `yaml:"description"`
	Method      string            `yaml:"method"`
	URL         string            `yaml:"url"` // with the template of the path
	InputSchema map[string]any    `yaml:"input_schema"`
	In          map[string]string `yaml:"in"`
	Headers     map[string]string `yaml:"headers"`
	Label       string            `yaml:"label"`
	Idempotent  bool              `yaml:"idempotent"`
	Timeout     int               `yaml:"timeout_seconds"`
	Later       *bool             `yaml:"later"`
}

// tool is a tool in the API.
type tool struct {
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema,omitempty"`
	Label       string         `json:"label,omitempty"`
	Idempotent  bool           `json:"idempotent,omitempty"`
	HTTP        request        `json:"http"`
}

type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	In      map[string]string `json:"in,omitempty"`
	Timeout int               `json:"timeout_seconds,omitempty"`
	Later   *bool             `json:"later,omitempty"`
}

// Definition is what a text defines.
type Definition struct {
	Host    string // scheme and host of the address of a tool; "": the text has none
	Headers map[string]string
	Tools   json.RawMessage // a list of tools in the API
}

// Parse reads one tool as the guide describes it.
func Parse(text string) (d Definition, err error) {
	var f file
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		return d, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	path := f.URL
	if u, err := url.Parse(f.URL); err == nil && u.Host != "" {
		d.Host = u.Scheme + "://" + u.Host
		path = strings.TrimPrefix(f.URL, d.Host)
	}
	d.Headers = f.Headers
	d.Tools, err = json.Marshal([]tool{{f.Title, f.Description, f.InputSchema, f.Label, f.Idempotent,
		request{f.Method, cmp.Or(path, "/"), f.In, f.Timeout, f.Later}}})
	if err != nil {
		return d, fmt.Errorf("the input_schema is not JSON: the names of its members are not all texts")
	}
	return d, nil
}

// ParseAny reads one tool as the guide describes it, or one tool or a list of tools as the API has
// them.
func ParseAny(text string) (d Definition, err error) {
	var tree any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return d, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	one, isOne := tree.(map[string]any)
	if _, ofAPI := one["http"]; isOne && !ofAPI {
		return Parse(text)
	}
	raw := json.RawMessage(text)
	if !json.Valid(raw) { // YAML
		if raw, err = json.Marshal(tree); err != nil {
			return d, errors.New("it is not JSON: the names of its members are not all texts")
		}
	}
	switch {
	case isOne:
		d.Tools = bytes.Join([][]byte{[]byte("["), raw, []byte("]")}, nil)
	case bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")):
		d.Tools = raw
	default:
		return d, errors.New("it is neither a tool nor a list of tools")
	}
	return d, nil
}
