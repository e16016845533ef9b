package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/sse"
)

// MCP forwards messages of the Model Context Protocol: it reads one message a line from in, sends
// it to the Parley server, and writes the responses to out. It returns when in has ended and every
// request has its response, when ctx ends, or when out fails. If a response takes longer than
// patience after the end of in, MCP responds to the open requests with an error and returns
// ErrUnanswered.
func (c *Client) MCP(ctx context.Context, in io.Reader, out io.Writer, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &bridge{Client: c, out: out, fail: cancel, open: make(map[string]context.CancelFunc)}
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() { // a read cannot be interrupted
		defer close(lines)
		ended <- eachLine(in, func(line []byte) bool {
			select {
			case lines <- line:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	var passed sync.WaitGroup
	defer func() {
		cancel(nil)
		passed.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, more := <-lines:
			if !more {
				patient := time.AfterFunc(patience, func() { cancel(ErrUnanswered) })
				defer patient.Stop()
				passed.Wait()
				return errors.Join(<-ended, context.Cause(ctx))
			}
			b.passMessage(ctx, line, &passed)
		}
	}
}

// ErrUnanswered means that the input of MCP ended before every request had its response.
var ErrUnanswered = errors.New("requests without a response are left")

// maxLine exceeds the server's limit, in bytes.
const maxLine = 4 << 20

// eachLine passes every line that is not empty to take, until take returns false. It passes the
// beginning of a line that is too long, which is not a valid message.
func eachLine(in io.Reader, take func([]byte) bool) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece[:min(len(piece), maxLine-len(line))]...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if whole := bytes.TrimSpace(line); len(whole) > 0 && !take(bytes.Clone(whole)) {
			return nil
		}
		line = line[:0]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a message: %w", err)
		}
	}
}

// bridge is the state of one call of MCP.
type bridge struct {
	*Client
	fail context.CancelCauseFunc

	writing sync.Mutex
	out     io.Writer

	mu       sync.Mutex
	revision string                        // the negotiated one; "" before initialize
	open     map[string]context.CancelFunc // open requests by their ids
}

// message holds the members of a message that the bridge needs.
type message struct {
	batch  bool // several messages in one
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Revision string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	Result *struct {
		Revision string `json:"protocolVersion"`
	}
	Error json.RawMessage
}

// passMessage forwards a message beside those that wait for a response.
func (b *bridge) passMessage(ctx context.Context, line []byte, passed *sync.WaitGroup) {
	var m message
	if json.Unmarshal(line, &m) != nil && m.ID == nil { // the server reports the fault
		m.ID = json.RawMessage("null")
	}
	m.batch = line[0] == '['
	if m.Method == "notifications/cancelled" {
		b.mu.Lock()
		defer b.mu.Unlock()
		if cancel := b.open[string(m.Params.RequestID)]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	id := string(m.ID)
	b.mu.Lock()
	b.open[id] = cancel
	b.mu.Unlock()
	passed.Go(func() {
		defer func() {
			b.mu.Lock()
			delete(b.open, id)
			b.mu.Unlock()
			cancel()
		}()
		err := b.exchangeMessage(ctx, m, line)
		if err != nil && m.ID != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrUnanswered)) {
			b.rejectRequest(m.ID, err)
		}
	})
}

// exchangeMessage sends a message and writes the responses. It fails if there is none.
func (b *bridge) exchangeMessage(ctx context.Context, m message, line []byte) error {
	req, err := b.newRequest(ctx, http.MethodPost, b.base.JoinPath("mcp"), line)
	if err != nil {
		return err
	}
	b.setHeaders(req.Header, m)
	res, err := b.sendRequest(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return b.streamMessages(req, m, res.Body)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return b.unreachableError(req, err, true)
	case bytes.Contains(body, []byte(`"jsonrpc"`)):
		b.writeAnswer(m, body)
	case res.StatusCode/100 != 2 || len(body) > 0: // a notification has an empty response
		return decodeFailure(res, body)
	}
	return nil
}

// streamMessages writes messages until the response to the request, or to all of a batch.
func (b *bridge) streamMessages(req *http.Request, m message, body io.Reader) error {
	reader := sse.NewReader(body)
	reader.Limit(maxAnswer)
	for {
		frame, err := reader.Next()
		switch {
		case err == io.EOF && m.batch:
			return nil
		case err == io.EOF:
			return b.unreachableError(req, io.ErrUnexpectedEOF, true)
		case err != nil:
			return b.unreachableError(req, err, true)
		case len(frame.Data) == 0:
		case b.writeAnswer(m, frame.Data) && !m.batch:
			return nil
		}
	}
}

// setHeaders sets the headers that repeat members of the body.
func (b *bridge) setHeaders(h http.Header, m message) {
	h.Set("Accept", "application/json, text/event-stream")
	revision := m.Params.Meta.Revision
	if revision == "" && m.Method != "initialize" {
		b.mu.Lock()
		revision = b.revision
		b.mu.Unlock()
	}
	if revision != "" {
		h.Set("MCP-Protocol-Version", revision)
	}
	for name, text := range map[string]string{"Mcp-Method": m.Method, "Mcp-Name": m.Params.Name} {
		if text != "" && len(text) <= maxHeader { // the server rejects a longer one
			h.Set(name, headerValue(text))
		}
	}
}

const maxHeader = 1 << 10 // bytes

// headerValue encodes a text for a header.
func headerValue(text string) string {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
	}
	return text
}

// writeAnswer writes a message, and reports whether it is the response to m.
func (b *bridge) writeAnswer(m message, text []byte) bool {
	var got message
	_ = json.Unmarshal(text, &got)
	if m.Method == "initialize" && got.Result != nil {
		b.mu.Lock()
		b.revision = got.Result.Revision
		b.mu.Unlock()
	}
	b.writeText(text)
	return got.Method == "" && (got.Result != nil || got.Error != nil)
}

// rejectRequest responds to a request with an error.
func (b *bridge) rejectRequest(id json.RawMessage, err error) {
	message := err.Error()
	if refused, ok := errors.AsType[*Error](err); ok {
		message = refused.Message
	} else if errors.Is(err, ErrUnanswered) {
		message = "The input ended before this response. A running turn continues: list_sessions lists its session, and get_messages " +
			"returns its answer."
	} else if _, ok := errors.AsType[*Unreachable](err); ok {
		message += ". A message with an idempotency_key can be sent again: it is one message."
	}
	const serverError = -32000
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": serverError, "message": message}})
	if err == nil {
		b.writeText(answer)
	}
}

func (b *bridge) writeText(text []byte) {
	var line bytes.Buffer
	if json.Compact(&line, text) != nil {
		return // not a message: it may come from a proxy
	}
	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	if _, err := b.out.Write(line.Bytes()); err != nil {
		b.fail(fmt.Errorf("write a message: %w", err))
	}
}
