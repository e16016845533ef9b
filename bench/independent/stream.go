package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// pace describes a turn that writes deltas.
type pace struct {
	deltas int
	rate   int           // deltas per second; 0: as fast as they are read
	every  time.Duration // 0 with rate 0
}

func newPace(deltas, rate int) *pace {
	p := &pace{deltas: deltas, rate: rate}
	if rate > 0 {
		p.every = time.Second / time.Duration(rate)
	}
	return p
}

// command makes the offline model write lines with their time of emission and their number.
func (p *pace) command() string { return fmt.Sprintf("@bench %d deltas at %d/s", p.deltas, p.rate) }

// lineSize is the length of such a line: 12 digits of time, a blank, 6 digits of the number, a
// newline, both in base 36.
const lineSize = 20

// stream is the stream of one turn.
type stream struct {
	pace         *pace
	first, whole time.Duration // since the request
	frames       int           // frames of text
	emitted      []int64       // time of each delta, in Unix nanoseconds of the server's clock
	received     []int64
	answer       strings.Builder // answer of a turn without a pace
	rest         string
}

// send sends a message, reads its stream to the end and stores its figures.
func (r *result) send(s *site, command string, p *pace) {
	got, status, err := post(s, command, p)
	r.add(got, status, err)
}

func post(s *site, command string, p *pace) (*stream, int, error) {
	body, _ := json.Marshal(map[string]any{"command": command, "stream": true})
	req, err := http.NewRequest(http.MethodPost, s.URL+"/api/v1/workspaces/"+s.Workspace+"/messages", bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Key)
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return nil, res.StatusCode, fmt.Errorf("%s: %s", res.Status, text)
	}
	got := &stream{pace: p}
	return got, res.StatusCode, got.read(res.Body, began)
}

// read reads frames until the stream ends and checks them.
func (s *stream) read(r io.Reader, began time.Time) error {
	var event, data string
	var last int64
	done := false
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 2<<10), 8<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			event = value
		case field == "data":
			data = value
		case field == "id":
			id, err := strconv.ParseInt(value, 10, 64)
			if err != nil || id <= last {
				return fmt.Errorf("id %q follows %d", value, last)
			}
			last = id
		case field == "" && event != "":
			if done {
				return fmt.Errorf("%s follows done", event)
			}
			now := time.Now()
			switch event {
			case "done":
				done = true
				s.whole = now.Sub(began)
			case "error":
				return fmt.Errorf("error: %s", data)
			case "text":
				if s.first == 0 {
					s.first = now.Sub(began)
				}
				if err := s.text(data, now.UnixNano()); err != nil {
					return err
				}
			}
			event, data = "", ""
		}
	}
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case !done:
		return fmt.Errorf("the stream ended without done")
	case s.pace == nil && s.answer.Len() == 0:
		return fmt.Errorf("the answer has no text")
	case s.pace != nil && (len(s.received) != s.pace.deltas || s.rest != ""):
		return fmt.Errorf("%d deltas of %d, then %q", len(s.received), s.pace.deltas, s.rest)
	}
	return nil
}

// text processes one frame of text. The deltas of a pace must arrive once and in order.
func (s *stream) text(data string, now int64) error {
	s.frames++
	var frame struct{ Text string }
	if err := json.Unmarshal([]byte(data), &frame); err != nil {
		return err
	}
	if s.pace == nil {
		s.answer.WriteString(frame.Text)
		return nil
	}
	text := s.rest + frame.Text
	for ; len(text) >= lineSize; text = text[lineSize:] {
		emitted, err := strconv.ParseInt(text[:12], 36, 64)
		if err != nil {
			return fmt.Errorf("%q has no time of emission", text[:lineSize])
		}
		number, err := strconv.ParseInt(text[13:19], 36, 64)
		if err != nil || number != int64(len(s.received)) || text[12] != ' ' || text[lineSize-1] != '\n' {
			return fmt.Errorf("%q is not delta %d", text[:lineSize], len(s.received))
		}
		s.emitted, s.received = append(s.emitted, emitted), append(s.received, now)
	}
	s.rest = text
	return nil
}

// waits returns for each delta the time from its emission to its arrival, and from its due time.
// The second also counts the delay of a model that the server blocks.
func (s *stream) waits() (sinceEmitted, sinceDue []time.Duration) {
	for i := range s.received {
		sinceEmitted = append(sinceEmitted, time.Duration(s.received[i]-s.emitted[i]))
		if s.pace.every > 0 {
			sinceDue = append(sinceDue, time.Duration(s.received[i]-s.emitted[0])-time.Duration(i)*s.pace.every)
		}
	}
	return sinceEmitted, sinceDue
}
