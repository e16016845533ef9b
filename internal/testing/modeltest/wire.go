package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
)

// sendReply writes a reply according to its fields.
func (s *Script) sendReply(w http.ResponseWriter, r *http.Request, reply Reply) {
	maps.Copy(w.Header(), reply.Header)
	if cmp.Or(reply.Status, http.StatusOK) != http.StatusOK {
		w.WriteHeader(reply.Status)
		_, _ = w.Write([]byte(reply.Body))
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush() // headers first, like real servers; a client that has left is noticed at the first frame
	all, rest := reply.Frames, []string(nil)
	if stop := cmp.Or(reply.Cut, reply.Hold); stop > 0 {
		all, rest = all[:min(stop, len(all))], all[min(stop, len(all)):]
	}
	sent := true
	for _, frame := range all {
		if sent = writeFrame(w, out, frame, reply); !sent {
			break
		}
	}
	switch {
	case reply.Cut > 0:
		resetConnection(out)
	case reply.Hold > 0 && sent:
		select {
		case <-r.Context().Done():
			s.signalLeft()
		case <-reply.Resume:
			for _, frame := range rest {
				if !writeFrame(w, out, frame, reply) {
					s.signalLeft()
					break
				}
			}
		}
	case !sent:
		s.signalLeft()
	}
}

// writeFrame sends one frame and reports whether the client still received it.
func writeFrame(w http.ResponseWriter, out *http.ResponseController, frame string, reply Reply) bool {
	if reply.KeepAlive {
		frame = ": keep-alive\n\n" + frame
	}
	if reply.CRLF {
		frame = strings.ReplaceAll(frame, "\n", "\r\n")
	}
	for len(frame) > 0 {
		n := len(frame)
		if reply.Bytes > 0 {
			n = min(n, reply.Bytes)
		}
		if _, err := w.Write([]byte(frame[:n])); err != nil || out.Flush() != nil {
			return false
		}
		frame = frame[n:]
	}
	return true
}

// resetConnection closes the connection like the kernel of a crashed server.
func resetConnection(out *http.ResponseController) {
	conn, _, err := out.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Data returns a frame without a name, as OpenAI sends them.
func Data(v any) string { return "data: " + mustEncode(v) + "\n\n" }

// Named returns a frame with a name, as Anthropic sends them.
func Named(name string, v any) string {
	return "event: " + name + "\ndata: " + mustEncode(v) + "\n\n"
}

func mustEncode(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("modeltest: encode frame: %v", err))
	}
	return string(data)
}

// splitPieces splits text into parts of a few characters, as models write; a long text into fewer
// parts.
func splitPieces(text string) []string {
	runes := []rune(text)
	size := max(4, len(runes)/100)
	var out []string
	for len(runes) > 0 {
		n := min(size, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}
