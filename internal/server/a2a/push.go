package a2a

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/store/callback"
)

// setPush adds a receiver of a task's updates.
func setPush(c *call.Call) (any, error) {
	conf := c.Params
	if c.Version == call.V03 {
		c.Params.Require("pushNotificationConfig")
		conf = c.Params.Child("pushNotificationConfig")
	}
	to := c.Parser.Receiver(conf)
	to.Name = cmp.Or(to.Name, uuid.NewString())
	id, err := c.TaskID("taskId")
	if err != nil {
		return nil, err
	}
	ctx, stop := c.BriefContext()
	defer stop()
	v, err := c.View(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := c.Turns.AddCallback(ctx, c.Workspace(), v.Turn.SessionID, id, *to); err != nil {
		return nil, err
	}
	return c.Version.Receiver(id, callback.Named{Name: to.Name, URL: to.URL, Scheme: to.Auth.Scheme}), nil
}

// readReceivers reads the receivers of a task. The names of the parameters depend on the version.
func readReceivers(c *call.Call) (id uuid.UUID, list []callback.Named, err error) {
	name := "taskId"
	if c.Version == call.V03 {
		name = "id"
	}
	if id, err = c.TaskID(name); err != nil {
		return id, nil, err
	}
	ctx, stop := c.BriefContext()
	defer stop()
	if _, err = c.View(ctx, id); err != nil {
		return id, nil, err
	}
	list, err = c.Callbacks.Named(ctx, c.Workspace(), id)
	return id, list, err
}

// configID parses the id of a receiver.
func configID(c *call.Call) string {
	if c.Version == call.V03 {
		return c.Params.String("pushNotificationConfigId", message.MaxReceiverID)
	}
	return c.Params.RequiredString("id", message.MaxReceiverID)
}

// getPush returns a receiver. In version 0.3 it is any of them if none is named.
func getPush(c *call.Call) (any, error) {
	name := configID(c)
	id, list, err := readReceivers(c)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if n.Name == name || name == "" {
			return c.Version.Receiver(id, n), nil
		}
	}
	return nil, &rpc.Error{Code: rpc.TaskNotFound, Message: "The task has no such push notification config.",
		About: map[string]string{"taskId": id.String()}}
}

// listPush returns the receivers of a task, in version 1.0 a page of them.
func listPush(c *call.Call) (any, error) {
	size, token := maxPage, ""
	if c.Version == call.V10 {
		size, token = c.Params.Int("pageSize", usualPage, 1, maxPage), c.Params.String("pageToken", message.MaxReceiverID)
	}
	id, list, err := readReceivers(c)
	if err != nil {
		return nil, err
	}
	if token != "" {
		i := slices.IndexFunc(list, func(n callback.Named) bool { return n.Name == token })
		if i < 0 {
			return nil, fault.Invalid(fault.Violation{Param: "/pageToken", Rule: "format",
				Message: "This pageToken is of no page of the task's configs, or of one that was deleted. Begin without one."})
		}
		list = list[i+1:]
	}
	next := ""
	if len(list) > size {
		list, next = list[:size], list[size-1].Name
	}
	configs := make([]any, len(list))
	for i, n := range list {
		configs[i] = c.Version.Receiver(id, n)
	}
	if c.Version == call.V03 {
		return configs, nil
	}
	return map[string]any{"configs": configs, "nextPageToken": next}, nil
}

// deletePush removes a receiver. It also succeeds if the receiver does not exist.
func deletePush(c *call.Call) (any, error) {
	name := configID(c)
	if c.Version == call.V03 && name == "" {
		c.Params.Missing("pushNotificationConfigId")
	}
	id, _, err := readReceivers(c)
	if err != nil {
		return nil, err
	}
	ctx, stop := c.BriefContext()
	defer stop()
	if err := c.Callbacks.Remove(ctx, c.Workspace(), id, name); err != nil {
		return nil, err
	}
	if c.Version == call.V03 {
		return nil, nil
	}
	return struct{}{}, nil
}
