package a2a

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
)

// Tell returns the encoder of callbacks to A2A receivers, for turn.Config. base is the public URL
// of the service, "" if it is not configured.
func Tell(sessions *session.Store, files *filestore.Store, base string) map[callback.Protocol]func(context.Context, callback.Delivery) ([]byte, error) {
	tell := make(map[callback.Protocol]func(context.Context, callback.Delivery) ([]byte, error))
	for _, v := range []version{v03, v10} {
		tell[v.protocol()] = func(ctx context.Context, d callback.Delivery) ([]byte, error) {
			view, err := sessions.Turn(ctx, d.Workspace, d.Turn)
			if err != nil {
				return nil, err
			}
			if err := asOf(ctx, sessions, &view, d); err != nil {
				return nil, err
			}
			of, err := filesOf(ctx, files, view)
			if err != nil {
				return nil, err
			}
			t := taskOf(base, view, of, whole)
			t.Status.Timestamp = stamp(d.At)
			return json.Marshal(v.sent(t))
		}
	}
	return tell
}

// asOf makes of a turn what it was when it had something to report: one that waited then may
// have gone on since.
func asOf(ctx context.Context, sessions *session.Store, v *session.View, d callback.Delivery) (err error) {
	if d.Type != callback.InputRequired {
		if session.State(v.Turn.State).Active() {
			return fmt.Errorf("turn %s has not ended", d.Turn)
		}
		return nil
	}
	v.Question, err = sessions.Question(ctx, d.Turn, d.Seq)
	v.Turn.State, v.Turn.Error = session.Waiting, nil
	v.Answer = session.Message{}
	return err
}
