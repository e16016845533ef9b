package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/words"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/turn"
)

// About is the common data of all pieces of an answer.
type About struct {
	ID         string
	Model      string
	Created    int64
	Session    uuid.UUID
	Usage      bool             // the stream ends with the usage
	Structured bool             // the content is only JSON: other text is sent as a refusal
	Forced     *turn.ForcedTool // that JSON is the input of a call of this tool; nil: none
	Turn       uuid.UUID
	Rejected   []filestore.Rejected // files that the agent does not have
	Note       string               // text before everything else
	Barred     bool                 // the caller may not answer a request for a secret
	Base       string               // base address of links
}

// Piece is a piece of an answer: one of these.
type Piece struct {
	Content   *string
	Refusal   *string // text in place of the JSON that the client expects
	Reasoning string  // the agent's activity
	Call      *Call   // a call of the client's own tools
	Finish    string  // the reason why the answer ends; the last piece
	Error     *event.Error
}

// Call is a call of the client's own tools.
type Call struct {
	Index     int // in the answer, from 0
	ID        string
	Name      string
	Arguments string // JSON
}

// Usage counts the tokens of an answer.
type Usage struct{ Prompt, Completion int64 }

// Projection projects the rows of a turn to the pieces of an answer, and collects the whole answer.
type Projection struct {
	About
	Content   strings.Builder
	Refusal   strings.Builder
	Reasoning strings.Builder
	Calls     []Call
	Tokens    Usage
	Error     *event.Error
	Finish    string // "": not finished

	encode func(Piece) []any
	head   int  // bytes of content before the agent's
	step   int  // offset in content of the newest step's text
	begins bool // the next text is the first of its step
	broke  bool // other data was sent since the last text
	cut    bool // the model's last reply was cut
	acted  bool // a tool was called
	acts   acts
}

// NewProjection returns a projection to the frames that encode makes of a piece.
func NewProjection(about About, encode func(Piece) []any) *Projection {
	return &Projection{About: about, encode: encode, begins: true, acts: newActs()}
}

// Begin implements server.Encoder.
func (p *Projection) Begin() []any {
	var lines []string
	if p.Note != "" {
		lines = append(lines, p.Note)
	}
	for _, f := range p.Rejected {
		lines = append(lines, fmt.Sprintf("The agent does not have the file %s: %s", cmp.Or(f.Filename, f.FileID.String()), f.Reason))
	}
	if lines == nil {
		return nil
	}
	frames := p.addAside(strings.Join(lines, "\n"))
	p.head, p.broke = p.Content.Len(), true
	return frames
}

// Row implements server.Encoder.
func (p *Projection) Row(row server.Row) []any {
	outcome := p.acts.recordRow(row.Body)
	if _, ok := row.Body.(event.ToolUse); ok {
		p.acted = true
	}
	if row.Seen {
		return nil
	}
	switch b := row.Body.(type) {
	case event.Text:
		text := b.Text
		if p.begins && text != "" { // always a paragraph of its own
			p.begins, p.step, text = false, p.Content.Len(), strings.TrimPrefix(text, event.StepBreak)
		}
		return p.addAside(text)
	case event.ToolUse:
		p.broke = true
		return p.addActivity(b.Summary)
	case event.ToolResult:
		if outcome != "" {
			return p.addActivity(outcome)
		}
	case event.Reply:
		p.cut, p.begins, p.broke = b.Cut, true, true
		p.Tokens.Prompt += b.Usage.InputTokens
		p.Tokens.Completion += b.Usage.OutputTokens
	case event.InputRequired:
		if row.Pending {
			p.broke = true
			return p.Say(words.Question(b, p.Base, p.Barred))
		}
	case event.ToolRequired:
		if row.Pending {
			return p.addCalls(b.Calls)
		}
	case event.ConnectRequired:
		if row.Pending {
			p.broke = true
			return p.Say(words.Connect(b, p.Base))
		}
	case event.Structured:
		if p.Forced != nil {
			return p.addCall(forcedCallID(p.Turn), p.Forced.Name, b.Result)
		}
		return p.addText(string(b.Result))
	case event.Attachment:
		return p.addLinks(b.Attachments)
	case event.Error:
		p.Error = &b
	case event.Done:
		return p.projectDone()
	}
	return nil
}

func (p *Projection) projectDone() []any {
	switch {
	case p.Error == nil && p.cut:
		return p.finishAnswer("length")
	case p.Error == nil && len(p.Calls) > 0 && p.Forced != nil && p.Forced.Required:
		return p.finishAnswer("tool_calls")
	case p.Error == nil:
		return p.finishAnswer("stop")
	case p.Error.Code == event.ContentRefused:
		return p.finishAnswer("content_filter")
	}
	return p.Fail(*p.Error)
}

// Fail implements server.Encoder.
func (p *Projection) Fail(e event.Error) []any {
	p.Error = &e
	return p.encode(Piece{Error: &e})
}

// Say ends the answer with a text that is not an answer. Clients that expect JSON get it as a
// refusal, which they handle.
func (p *Projection) Say(text string) []any {
	if !p.Structured {
		return append(p.addText(text), p.finishAnswer("stop")...)
	}
	p.Refusal.WriteString(text)
	return append(p.encode(Piece{Refusal: &text}), p.finishAnswer("stop")...)
}

// Failed reports whether the turn has failed. It returns the HTTP status of the whole answer.
// OpenAI's clients and the AI SDK retry a request on 408, 409, 429 and every 5xx, and each retry
// would be another turn with all its tools. So a failure is a 503 only if the provider was
// overloaded before the turn called any tool.
func (p *Projection) Failed() (status int, failed bool) {
	switch {
	case p.Error == nil || p.Finish != "":
		return http.StatusOK, false
	case p.Error.Code == event.ModelOverloaded && !p.acted:
		return http.StatusServiceUnavailable, true
	}
	return http.StatusUnprocessableEntity, true
}

// Shorten reduces the content to that of a complete answer: the text of the last step, with the
// service's text before and after it.
func (p *Projection) Shorten() {
	content := p.Content.String()
	head, answer := content[:p.head], strings.TrimPrefix(content[max(p.head, p.step):], event.StepBreak)
	p.Content.Reset()
	p.head, p.step = 0, 0
	if head != "" && answer != "" {
		head += event.StepBreak
	}
	p.Content.WriteString(head + answer)
}

// addCalls ends the answer with the calls that the client has to run.
func (p *Projection) addCalls(calls []event.PendingCall) (frames []any) {
	for _, c := range calls {
		frames = append(frames, p.addCall(c.ToolUseID, c.Tool, c.Input)...)
	}
	return append(frames, p.finishAnswer("tool_calls")...)
}

func (p *Projection) addCall(id, tool string, input json.RawMessage) []any {
	c := Call{Index: len(p.Calls), ID: id, Name: tool, Arguments: string(input)}
	p.Calls = append(p.Calls, c)
	return p.encode(Piece{Call: &c})
}

// addText adds to the content. Text after a tool call begins a new paragraph.
func (p *Projection) addText(s string) []any {
	if p.broke && p.Content.Len() > 0 {
		s = "\n\n" + s
	}
	p.broke = false
	p.Content.WriteString(s)
	return p.encode(Piece{Content: &s})
}

func (p *Projection) addReasoning(s string) []any {
	p.Reasoning.WriteString(s)
	return p.encode(Piece{Reasoning: s})
}

// addActivity adds a line about a tool call of the agent.
func (p *Projection) addActivity(summary string) []any {
	if before := p.Reasoning.String(); before != "" && !strings.HasSuffix(before, "\n") {
		summary = "\n" + summary
	}
	return p.addReasoning(summary + "\n")
}

// addAside adds text, or reasoning if the content is JSON.
func (p *Projection) addAside(s string) []any {
	if !p.Structured {
		return p.addText(s)
	}
	if p.broke {
		p.broke, s = false, "\n"+s
	}
	return p.addReasoning(s)
}

// addLinks adds links after the text.
func (p *Projection) addLinks(list []event.File) []any {
	var links []string
	for _, f := range list {
		name := strings.NewReplacer("[", "(", "]", ")", "\n", " ", "\r", " ").Replace(f.Filename)
		links = append(links, fmt.Sprintf("[%s](%s)", name, server.AbsoluteURL(p.Base, f.DownloadURL)))
	}
	p.broke = true
	return p.addAside(strings.Join(links, "\n"))
}

func (p *Projection) finishAnswer(reason string) []any {
	p.Finish = reason
	return p.encode(Piece{Finish: reason})
}

// failure is OpenAI's error format, which is also that of the envelope.
type failure struct {
	Error struct {
		Message string     `json:"message"`
		Type    string     `json:"type"`
		Param   *string    `json:"param"`
		Code    event.Code `json:"code"`
	} `json:"error"`
}

// Failure returns the body of an error.
func Failure(e event.Error) any {
	var f failure
	f.Error.Message, f.Error.Type, f.Error.Code = e.Message, "api_error", e.Code
	return f
}
