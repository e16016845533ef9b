package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of the parameters.
const (
	maxTemperature = 2
	maxTokens      = 1_000_000
	maxStops       = 4
	maxStop        = 200 // characters
	maxSeed        = 1 << 53
)

// parameterFields are the parameters of the model, with the older and the newer names of one.
var parameterFields = []string{"temperature", "top_p", "max_tokens", "max_completion_tokens", "max_output_tokens", "stop", "seed",
	"reasoning_effort"}

// efforts are the efforts that every provider has. otherEfforts are those that only some models of
// OpenAI have; they are ignored.
var (
	efforts      = []string{"minimal", "low", "medium", "high"}
	otherEfforts = []string{"none", "xhigh", "max"}
)

// parseParameters parses the parameters of the model, if the workspace accepts them from callers.
func (in *Incoming) parseParameters(r *server.Request, o *turn.Options) {
	ignore := func(name string) { in.Ignored = append(in.Ignored, cmp.Or(r.Names[name], name)) }
	if !r.Caller.Workspace.CallerParameters {
		for _, name := range parameterFields {
			if _, ok := in.Given[name]; ok {
				ignore(name)
			}
		}
		return
	}
	if raw, ok := in.Given["temperature"]; ok {
		o.Model.Temperature = new(in.Number("/temperature", raw, 0, maxTemperature))
	}
	if raw, ok := in.Given["top_p"]; ok {
		o.Model.TopP = new(in.Number("/top_p", raw, 0, 1))
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if raw, ok := in.Given[name]; ok {
			o.Model.MaxTokens = in.Integer("/"+name, raw, 1, maxTokens)
		}
	}
	if raw, ok := in.Given["seed"]; ok {
		o.Model.Seed = new(int64(in.Integer("/seed", raw, -maxSeed, maxSeed)))
	}
	if raw, ok := in.Given["stop"]; ok {
		if o.Model.Stop = in.parseStop(raw); len(o.Model.Stop) == 0 {
			in.Ignored = append(in.Ignored, "stop")
		}
	}
	if raw, ok := in.Given["reasoning_effort"]; ok {
		effort := in.OneOf("/reasoning_effort", raw, slices.Concat(efforts, otherEfforts)...)
		if slices.Contains(efforts, effort) {
			o.Model.Effort = effort
		} else {
			ignore("reasoning_effort")
		}
	}
}

// parseStop parses one text at which a reply ends, or several. An empty text ends none.
func (in *Incoming) parseStop(raw json.RawMessage) (stops []string) {
	if raw[0] == '"' {
		stops = append(stops, in.stopText("/stop", raw))
	} else {
		for i, item := range in.Array("/stop", raw, maxStops) {
			stops = append(stops, in.stopText("/stop/"+strconv.Itoa(i), item))
		}
	}
	return slices.DeleteFunc(stops, func(stop string) bool { return stop == "" })
}

// stopText parses a text at which a reply ends. It can be a line end.
func (in *Incoming) stopText(param string, raw json.RawMessage) string {
	text, _ := in.Text(param, raw)
	if n := len([]rune(text)); n > maxStop {
		in.Longer(param, "characters", maxStop)
	}
	return text
}
