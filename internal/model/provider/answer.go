package provider

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// OutputDescription describes to a model the tool that receives its answer.
const OutputDescription = "Takes the whole answer as data."

// Answer is a reply to a request for Output: only the value, as text. It is taken from the first of
// replies that the provider accepts; each one makes its request in another way. The value is the
// input of a call, or else the text, without the fence that some models put around JSON.
func (f Form) Answer(replies ...iter.Seq2[model.Chunk, error]) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for i, reply := range replies {
			said, last, err := readReply(reply)
			if errors.Is(err, errNotAccepted) && i < len(replies)-1 {
				continue
			}
			if err != nil {
				yield(model.Chunk{}, err)
			} else if yield(model.Chunk{Text: string(f.Value(json.RawMessage(removeFence(said))))}, nil) {
				yield(last, nil)
			}
			return
		}
	}
}

// readReply reads a whole reply: the value in it, and its last chunk.
func readReply(reply iter.Seq2[model.Chunk, error]) (said string, last model.Chunk, err error) {
	var text strings.Builder
	var call *event.ToolCall
	for c, err := range reply {
		if err != nil {
			return "", last, err
		}
		text.WriteString(c.Text)
		if call == nil {
			call = c.Call
		}
		last = c
	}
	if call == nil {
		return text.String(), last, nil
	}
	last.Stop = model.StopEnd
	if written, bad := model.Malformed(call.Input); bad {
		return written, last, nil
	}
	return string(call.Input), last, nil
}

func removeFence(s string) string {
	s = strings.TrimSpace(s)
	inside, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inside, "json"), "```"))
}

// errNotAccepted marks a request that can be repeated in another way.
var errNotAccepted = errors.New("not accepted")
