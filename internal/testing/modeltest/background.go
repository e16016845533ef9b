package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Background is a fake of OpenAI's background responses: a response continues when its connection
// breaks, and can be read again from its beginning. It must not be copied once a server uses it.
type Background struct {
	// Reply returns the n-th response, from 1. Its Cut and Hold apply to the connection that began it.
	Reply func(n int) Reply
	// Again are the readings of responses: their Status, Cut and Hold. Readings after the last one are
	// whole.
	Again []Reply

	connections Script
	mu          sync.Mutex
	begun       [][]string // frames of the responses
	read        int
	canceled    []string
}

// Serve starts the server. Its base URL is URL+"/v1".
func (b *Background) Serve() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", b.begin)
	mux.HandleFunc("GET /v1/responses/{id}", b.readAgain)
	mux.HandleFunc("POST /v1/responses/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.canceled = append(b.canceled, r.PathValue("id"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"cancelled"}`))
	})
	return httptest.NewServer(mux)
}

// Counts returns how many responses were generated and read again, and which were canceled.
func (b *Background) Counts() (begun, read int, canceled []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.begun), b.read, append([]string(nil), b.canceled...)
}

func (b *Background) begin(w http.ResponseWriter, r *http.Request) {
	var body struct{ Background, Store, Stream bool }
	if json.NewDecoder(r.Body).Decode(&body) != nil || !body.Background || !body.Store || !body.Stream {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	n := len(b.begun) + 1
	reply := b.Reply(n)
	for i, frame := range responsesFrames(Request{}, reply) {
		frame = strings.ReplaceAll(frame, "resp_fake", fmt.Sprint("resp_", n))
		reply.Frames = append(reply.Frames, strings.Replace(frame, "data: {", fmt.Sprintf(`data: {"sequence_number":%d,`, i), 1))
	}
	b.begun = append(b.begun, reply.Frames)
	b.mu.Unlock()
	b.connections.sendReply(w, r, reply)
}

func (b *Background) readAgain(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	var reply Reply
	if b.read < len(b.Again) {
		reply = b.Again[b.read]
	}
	b.read++
	n := 0
	_, _ = fmt.Sscanf(r.PathValue("id"), "resp_%d", &n) // another id has no response
	if n < 1 || n > len(b.begun) || r.URL.Query().Get("stream") != "true" {
		reply.Status = http.StatusNotFound
	} else {
		reply.Frames = b.begun[n-1]
	}
	b.mu.Unlock()
	b.connections.sendReply(w, r, reply)
}
