package a2a

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/store/callback"
)

// setPush adds a receiver of a task's updates.
func (c *call) setPush() (any, error) {
	conf := c.params
	if c.version == v03 {
		c.params.Require("pushNotificationConfig")
		conf = c.params.Child("pushNotificationConfig")
	}
	to := c.parser.Receiver(conf)
	to.Name = cmp.Or(to.Name, uuid.NewString())
	id, err := c.taskID("taskId")
	if err != nil {
		return nil, err
	}
	ctx, stop := c.brief()
	defer stop()
	v, err := c.view(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := c.Turns.AddCallback(ctx, c.workspace(), v.Turn.SessionID, id, *to); err != nil {
		return nil, err
	}
	return c.version.Receiver(id, callback.Named{Name: to.Name, URL: to.URL, Scheme: to.Auth.Scheme}), nil
}

// registerReceiver registers the receiver of a message for a task that the message did not start.
func (c *call) registerReceiver(ctx context.Context, in *message.Incoming, context, id uuid.UUID) error {
	if in.Callback == nil {
		return nil
	}
	if _, err := c.view(ctx, id); err != nil {
		return err
	}
	return c.Turns.AddCallback(ctx, c.workspace(), context, id, *in.Callback)
}

// readReceivers reads the receivers of a task. The names of the parameters depend on the version.
func (c *call) readReceivers() (id uuid.UUID, list []callback.Named, err error) {
	name := "taskId"
	if c.version == v03 {
		name = "id"
	}
	if id, err = c.taskID(name); err != nil {
		return id, nil, err
	}
	ctx, stop := c.brief()
	defer stop()
	if _, err = c.view(ctx, id); err != nil {
		return id, nil, err
	}
	list, err = c.Callbacks.Named(ctx, c.workspace(), id)
	return id, list, err
}

// configID parses the id of a receiver.
func (c *call) configID() string {
	if c.version == v03 {
		return c.params.String("pushNotificationConfigId", message.MaxReceiverID)
	}
	return c.params.RequiredString("id", message.MaxReceiverID)
}

// getPush returns a receiver. In version 0.3 it is any of them if none is named.
func (c *call) getPush() (any, error) {
	name := c.configID()
	id, list, err := c.readReceivers()
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if n.Name == name || name == "" {
			return c.version.Receiver(id, n), nil
		}
	}
	return nil, &rpc.Error{Code: rpc.TaskNotFound, Message: "The task has no such push notification config.", About: map[string]string{"taskId": id.String()}}
}

// listPush returns the receivers of a task, in version 1.0 a page of them.
func (c *call) listPush() (any, error) {
	size, token := maxPage, ""
	if c.version == v10 {
		size, token = c.params.Int("pageSize", usualPage, 1, maxPage), c.params.String("pageToken", message.MaxReceiverID)
	}
	id, list, err := c.readReceivers()
	if err != nil {
		return nil, err
	}
	if token != "" {
		i := slices.IndexFunc(list, func(n callback.Named) bool { return n.Name == token })
		if i < 0 {
			return nil, fault.Invalid(fault.Violation{Param: "/pageToken", Rule: "format", Message: "This pageToken is of no page of the task's configs, or of one that was deleted. Begin without one."})
		}
		list = list[i+1:]
	}
	next := ""
	if len(list) > size {
		list, next = list[:size], list[size-1].Name
	}
	configs := make([]any, len(list))
	for i, n := range list {
		configs[i] = c.version.Receiver(id, n)
	}
	if c.version == v03 {
		return configs, nil
	}
	return map[string]any{"configs": configs, "nextPageToken": next}, nil
}

// deletePush removes a receiver. It also succeeds if the receiver does not exist.
func (c *call) deletePush() (any, error) {
	name := c.configID()
	if c.version == v03 && name == "" {
		c.params.Missing("pushNotificationConfigId")
	}
	id, _, err := c.readReceivers()
	if err != nil {
		return nil, err
	}
	ctx, stop := c.brief()
	defer stop()
	if err := c.Callbacks.Remove(ctx, c.workspace(), id, name); err != nil {
		return nil, err
	}
	if c.version == v03 {
		return nil, nil
	}
	return struct{}{}, nil
}
