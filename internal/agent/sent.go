package agent

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// Setup is what the requests of a turn have from the configuration: everything but the conversation
// and what its caller sent. A request is rebuilt from the log and the setup.
type Setup struct {
	Instructions string     `json:"instructions"`
	Effort       string     `json:"effort,omitempty"`
	Tools        []SentTool `json:"tools"`
	Denied       []string   `json:"denied,omitempty"` // tools of the caller that the rules deny
}

// SentTool is a tool of a setup.
type SentTool struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Schema      SentSchema `json:"schema"`
}

// SentSchema is the JSON Schema of a tool. In the JSON of a setup it is a text, which keeps its bytes.
type SentSchema []byte

// MarshalText implements encoding.TextMarshaler.
func (s SentSchema) MarshalText() ([]byte, error) { return s, nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *SentSchema) UnmarshalText(text []byte) error {
	*s = slices.Clone(text)
	return nil
}

// takeSetup returns the setup of the run's agent.
func (r *run) takeSetup() Setup {
	specs := r.sortedSpecs()
	s := Setup{Instructions: r.Instructions, Effort: r.Effort, Tools: make([]SentTool, 0, len(specs)+1)}
	for _, spec := range specs {
		switch {
		case spec.Unavailable == "" && !spec.Caller:
			s.Tools = append(s.Tools, SentTool{spec.Name, spec.Description, SentSchema(spec.Schema)})
		case spec.Unavailable != "" && spec.Caller:
			s.Denied = append(s.Denied, spec.Name)
		}
	}
	if r.Secrets != nil {
		s.Tools = append(s.Tools, SentTool{secretTool.Name, secretTool.Description, SentSchema(secretTool.Schema)})
	}
	return s
}

// Digest returns the SHA-256 of a setup.
func (s Setup) Digest() string {
	d := newDigest()
	d.add(s.Instructions, s.Effort)
	d.count(len(s.Tools))
	for _, t := range s.Tools {
		d.add(t.Name, t.Description)
		d.addBytes(t.Schema)
	}
	d.add(s.Denied...)
	return d.sum()
}

// Agent returns an agent with a setup. It can rebuild requests, but not run a turn.
func (s Setup) Agent() *Agent {
	a := &Agent{Instructions: s.Instructions, Effort: s.Effort}
	for _, t := range s.Tools {
		if t.Name == requestSecret {
			a.Secrets = func(context.Context, string) (string, error) { return "", errNotRunning }
			continue
		}
		a.Tools = append(a.Tools, storedTool(t))
	}
	return a
}

var errNotRunning = errors.New("the agent of a rebuilt request does not run")

// storedTool is a tool of a setup.
type storedTool SentTool

// Spec implements tool.Tool.
func (t storedTool) Spec() tool.Spec {
	return tool.Spec{Name: t.Name, Description: t.Description, Schema: json.RawMessage(t.Schema)}
}

// Call implements tool.Tool.
func (storedTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errNotRunning
}

// Rebuilt is the request of a reply, as far as the log and the setup contain it.
type Rebuilt struct {
	Reply     event.Reply
	Compacted *event.Compacted // the summary in the request; nil: none
	Request   model.Request
	SHA256    string // of the request
}

// Rebuild returns the request of the step-th reply of a conversation's log, from 1; ok is false if the
// log has fewer. The prompt of a skill is not in it: the message in the log stands for it.
func (a *Agent) Rebuild(ctx context.Context, c Conversation, step int) (b Rebuilt, ok bool, err error) {
	whole, err := rebuildState(c.Log)
	if err != nil || step < 1 || step > len(whole.steps) {
		return b, false, err
	}
	b.Reply = whole.steps[step-1].reply
	n := 0
	c.Log = c.Log[:slices.IndexFunc(c.Log, func(e event.Event) bool {
		if e.Kind == event.KindReply {
			n++
		}
		return n == step
	})]
	c.Prompt = ""
	r := &run{Agent: a, c: c}
	if r.state, err = rebuildState(c.Log); err != nil {
		return b, false, err
	}
	if r.past, err = r.pastUnits(); err != nil {
		return b, false, err
	}
	for _, s := range r.state.steps {
		s.reasoning = r.openReasoning(ctx, s.reply)
	}
	sent := event.Sent{}
	if b.Reply.Sent != nil {
		sent = *b.Reply.Sent
	}
	if !sent.FileText {
		r.c.Documents = withoutText(r.c.Documents)
	}
	units := r.loadedUnits(step - 1)
	units = renameCalls(units[max(placeOf(units, sent.From), 0):])
	b.Request = r.assemble(step-1, units, sent.Masked)
	b.Request.Partial = b.Reply.Text[:min(sent.Partial, len(b.Reply.Text))]
	b.SHA256 = r.digestRequest(b.Reply.Usage.Model, b.Request)
	if r.compaction != nil {
		b.Compacted = &r.compaction.Compacted
	}
	return b, true, nil
}

// withoutText returns files without their texts: an earlier release did not send them.
func withoutText(files []model.File) []model.File {
	files = slices.Clone(files)
	for i := range files {
		files[i].Text = ""
	}
	return files
}

// digestRequest returns the SHA-256 of a request, with the message in the log in place of the prompt
// of a skill. docs/internals/context.md describes the format.
func (r *run) digestRequest(name string, req model.Request) string {
	d := newDigest()
	d.add(name, req.System, req.Partial, req.Effort, strconv.Itoa(req.MaxTokens), strconv.FormatBool(req.MustCall),
		strconv.FormatBool(req.OneCall))
	options, _ := json.Marshal(req.Options) // of numbers and strings
	d.addBytes(options)
	if req.Output != nil {
		d.add(req.Output.Name)
		d.addBytes(req.Output.Schema)
	}
	d.count(len(req.Tools))
	for _, t := range req.Tools {
		d.add(t.Name, t.Description)
		d.addBytes(t.Schema)
	}
	d.count(len(req.Messages))
	for _, m := range req.Messages {
		if m.Role == model.User && r.c.Prompt != "" && strings.HasPrefix(m.Text, r.c.Prompt) {
			m.Text = r.state.message.Content + m.Text[len(r.c.Prompt):]
		}
		d.addMessage(m)
	}
	return d.sum()
}

// digest is a SHA-256 of texts, each after its length, so that no two lists of texts are the same
// bytes.
type digest struct {
	hash   hash.Hash // it never fails, and so the writer does not
	writer *bufio.Writer
}

func newDigest() digest {
	h := sha256.New()
	return digest{h, bufio.NewWriterSize(h, 1<<10)}
}

func (d digest) add(texts ...string) {
	for _, t := range texts {
		d.count(len(t))
		_, _ = d.writer.WriteString(t)
	}
}

func (d digest) addBytes(b []byte) {
	d.count(len(b))
	_, _ = d.writer.Write(b)
}

func (d digest) count(n int) {
	_, _ = d.writer.Write(binary.BigEndian.AppendUint64(d.writer.AvailableBuffer(), uint64(n)))
}

func (d digest) addMessage(m model.Message) {
	d.add(string(m.Role), m.Text, m.CallID, strconv.FormatBool(m.Failed))
	d.count(len(m.Images))
	for _, image := range m.Images {
		d.add(image.MIME)
		d.addBytes(image.Data)
	}
	d.count(len(m.Files))
	for _, f := range m.Files {
		d.add(f.Name, f.MIME)
		d.addBytes(f.Data)
		if f.Text != "" {
			d.add("text", f.Text)
		}
	}
	d.count(len(m.Calls))
	for _, c := range m.Calls {
		d.add(c.ID, c.Tool)
		d.addBytes(c.Input)
	}
	d.count(len(m.Reasoning))
	for _, item := range m.Reasoning {
		d.add(item.Provider)
		d.addBytes(item.Data)
	}
}

func (d digest) sum() string {
	_ = d.writer.Flush()
	return hex.EncodeToString(d.hash.Sum(nil))
}
