package main

import (
	"context"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"

	"github.com/parley-server/parley/internal/testing/wait"
)

// Tiny makes options for the plan that checks integrity and measures nothing.
func Tiny(database string, progress func(string)) Options {
	return Options{Database: database, Progress: progress, tiny: true}
}

// Tamper serves turns whose events a function may change before they are sent.
type Tamper func(evs []event.Event) []event.Event

func (t Tamper) start(context.Context, string) (uuid.UUID, error) { return uuid.New(), nil }

func (t Tamper) follow(ctx context.Context, id uuid.UUID, cursor int64, each func([]event.Event) error) error {
	bodies := []event.Body{event.Open{SessionID: id}}
	deltas, err := stampedDeltas(ctx, TamperedDeltas)
	if err != nil {
		return err
	}
	bodies = append(append(bodies, deltas...), event.Done{SessionID: id})
	var evs []event.Event
	for i, b := range bodies {
		data, err := event.Encode(b)
		if err != nil {
			return err
		}
		if seq := int64(i + 1); seq > cursor {
			evs = append(evs, event.Event{Seq: seq, Kind: b.Kind(), Data: data})
		}
	}
	return each(t(evs))
}

// TamperedDeltas is how many deltas a tampered turn has.
const TamperedDeltas = 30

// ReadTampered reads one answer of a server that tampers, over two connections.
func ReadTampered(ctx context.Context, t Tamper) error {
	ctx, stop := context.WithTimeout(ctx, wait.Limit)
	ready := make(chan string, 1)
	served := make(chan error, 1)
	go func() { served <- serveSource(ctx, t, func(url string) { ready <- url }) }()
	var url string
	select {
	case url = <-ready:
	case err := <-served:
		stop()
		return err
	}
	defer func() {
		stop()
		<-served
	}()
	c, err := newClient(url, slug, "")
	if err != nil {
		return err
	}
	return (&reader{client: c, deltas: TamperedDeltas, cut: TamperedDeltas / 3}).run(ctx)
}

// Concluded is a report of one scenario with an unmerged target of service to naive.
func Concluded(modes ...ModeResult) *Report {
	s := scenario{ratios: []ratio{{What: "rate", Metric: Rate, Of: Service, To: Naive, Least: 1, Unmerged: true}}}
	r := &Report{Results: []Result{{scenario: s, Modes: modes}}}
	r.conclude()
	return r
}

// Peers lets the peers below a directory run a flat scenario with 10 deltas.
func Peers(dir string) (modes, missing []string, run func(ctx context.Context, mode string) (Figures, error), err error) {
	peers, missing, err := loadPeers(dir)
	s := scenario{peerWork: []string{"flat", "2", "10"}}.withPeers(peers)
	return s.Modes, missing, func(ctx context.Context, mode string) (Figures, error) { return s.run(ctx, nil, mode) }, err
}
