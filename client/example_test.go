package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/parley-server/parley/client"
)

// Send a message and print the answer while the agent writes it. Send resumes a broken connection:
// the loop sees every frame once and in order.
func ExampleClient_Send() {
	c, err := client.New(options) // client.Options{URL: "https://parley.example", Workspace: "demo", Key: "prl_…"}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for frame, err := range c.Send(context.Background(), client.Message{Command: "@say Hello from the agent."}) {
		if err != nil {
			log.Fatal(err)
		}
		body, err := frame.Body()
		if err != nil {
			log.Fatal(err)
		}
		switch b := body.(type) {
		case client.Text:
			fmt.Print(b.Text)
		case client.TurnError:
			log.Fatal(b.Message)
		}
	}
	// Output: Hello from the agent.
}

// Resume a stream in another process: keep the session and the ID of the last frame, and pass them
// to Follow. The turn runs on while no client reads.
func ExampleClient_Follow() {
	ctx := context.Background()
	c, err := client.New(options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var answer, session, lastID string
	read := func(frame client.Frame) client.Kind {
		lastID = frame.ID
		body, err := frame.Body()
		if err != nil {
			log.Fatal(err)
		}
		switch b := body.(type) {
		case client.Open:
			session = b.SessionID
		case client.Text:
			answer += b.Text
		}
		return frame.Event
	}
	for frame, err := range c.Send(ctx, client.Message{Command: "@text 8 deltas at 100/s"}) {
		if err != nil {
			log.Fatal(err)
		}
		if read(frame) == client.KindText {
			break // the reader disconnects after the first words
		}
	}
	for frame, err := range c.Follow(ctx, session, lastID) {
		if err != nil {
			log.Fatal(err)
		}
		read(frame)
	}
	fmt.Println(answer)
	// Output: 0.......... 1.......... 2.......... 3.......... 4.......... 5.......... 6.......... 7..........
}

// Decide an approval while the stream waits with its turn.
func ExampleClient_Decide() {
	ctx := context.Background()
	c, err := client.New(options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	message := client.Message{Command: "@call wiki_write {\"page\":\"tea\",\"content\":\"At four.\"}\n@say Written."}
	for frame, err := range c.Send(ctx, message) {
		if err != nil {
			log.Fatal(err)
		}
		body, err := frame.Body()
		if err != nil {
			log.Fatal(err)
		}
		switch b := body.(type) {
		case client.InputRequired:
			fmt.Println("approve:", b.Operations[0].Summary)
			decided, err := c.Decide(ctx, b.ApprovalID, client.Decision{Decision: "allow", Actor: "anna@example.com"})
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(decided.Status)
		case client.Text:
			fmt.Print(b.Text)
		}
	}
	// Output:
	// approve: write wiki page tea (8 bytes)
	// allowed
	// Written.
}

// Give the agent a function of this program as a tool. Send runs it when the agent calls it, posts the
// result and continues the stream.
func ExampleCallerTool() {
	c, err := client.New(options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	weather := client.CallerTool{
		Name:        "get_weather",
		Description: "The weather of a city.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		Call: func(_ context.Context, input json.RawMessage) (any, error) {
			var in struct{ City string }
			if err := json.Unmarshal(input, &in); err != nil {
				return nil, err
			}
			return map[string]any{"city": in.City, "celsius": 21}, nil
		},
	}
	message := client.Message{Command: `Use get_weather with {"city":"Paris"}`, Tools: []client.CallerTool{weather}}
	for frame, err := range c.Send(context.Background(), message) {
		if err != nil {
			log.Fatal(err)
		}
		body, err := frame.Body()
		if err != nil {
			log.Fatal(err)
		}
		if result, ok := body.(client.ToolResult); ok {
			fmt.Println(result.Output)
		}
	}
	// Output: {"celsius":21,"city":"Paris"}
}
