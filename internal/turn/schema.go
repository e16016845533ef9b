package turn

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/schema"
)

// compileSchema parses a response_schema. Its error names the part that is not accepted.
func compileSchema(raw []byte) (*schema.Schema, error) {
	compiled, err := schema.Compile(raw)
	if bad, ok := errors.AsType[*schema.Error](err); ok {
		return nil, &fault.Error{Code: fault.InvalidResponseSchema, Message: "response_schema" + locationText(bad.Path) + ": " + bad.Reason,
			Param:  "response_schema",
			Detail: fault.Detail{Violations: []fault.Violation{{Param: "/response_schema" + bad.Path, Rule: "schema", Message: bad.Reason}}}}
	}
	return compiled, err
}

func locationText(path string) string {
	if path == "" {
		return ""
	}
	return " at " + path
}

// structuredOutput returns the output format for a response_schema.
func structuredOutput(raw json.RawMessage) (*agent.Output, error) {
	compiled, err := compileSchema(raw)
	if err != nil {
		return nil, err
	}
	return &agent.Output{Schema: raw, Check: func(answer json.RawMessage) (problems []string) {
		for _, v := range compiled.Validate(answer) {
			problems = append(problems, strings.TrimSpace(v.Path+" "+v.Message))
		}
		return problems
	}}, nil
}
