// The smoke test sends a message, lists sessions and reads an error with the generated client.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"example.com/smoke/parley"
)

//go:generate go tool oapi-codegen -config config.yaml openapi.json

func main() {
	if err := run(context.Background(), os.Getenv("PARLEY_WORKSPACE")); err != nil {
		log.Fatal(err)
	}
	fmt.Println("The generated client works.")
}

func run(ctx context.Context, workspace string) error {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("PARLEY_API_KEY"))
		return nil
	}
	client, err := parley.NewClientWithResponses(os.Getenv("PARLEY_URL"), parley.WithRequestEditorFn(authorize))
	if err != nil {
		return err
	}
	sent, err := client.SendMessageWithResponse(ctx, workspace, nil, parley.MessageRequest{Command: new("How much is 12*7+3?"),
		Stream: new(false)})
	if err != nil {
		return err
	}
	if sent.JSON200 == nil || sent.JSON200.Output == nil || !strings.Contains(*sent.JSON200.Output, "87") {
		return fmt.Errorf("send a message: %s %s", sent.Status(), sent.Body)
	}
	listed, err := client.ListSessionsWithResponse(ctx, workspace, &parley.ListSessionsParams{Limit: new(5)})
	if err != nil {
		return err
	}
	known := func(s parley.Session) bool { return s.SessionId == sent.JSON200.SessionId }
	if listed.JSON200 == nil || !slices.ContainsFunc(listed.JSON200.Data, known) {
		return fmt.Errorf("list sessions: %s %s", listed.Status(), listed.Body)
	}
	missing, err := client.ListMessagesWithResponse(ctx, workspace, uuid.New(), nil)
	if err != nil {
		return err
	}
	if missing.JSON404 == nil || missing.JSON404.Error.Code != parley.SessionNotFoundErrorCodeSESSIONNOTFOUND {
		return fmt.Errorf("read an error: %s %s", missing.Status(), missing.Body)
	}
	return nil
}
