package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TicketsHost is the name under which tools reach the ticket system.
const TicketsHost = "tickets.demo.internal"

// TicketsURL is the address of the ticket system for tools.
const TicketsURL = "http://" + TicketsHost + "/mcp"

// maxTickets is how many tickets the system keeps.
const maxTickets = 1000

// Ticket is an entry of the demo's ticket system.
type Ticket struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	State string `json:"state"`
}

// Tickets is an in-memory ticket system, a small MCP server and HTTP API on loopback.
type Tickets struct {
	listener net.Listener
	server   *http.Server
	ended    chan error

	mu     sync.Mutex
	list   []Ticket
	orders []string // addresses for the results
}

// StartTickets serves the ticket system until Close.
func StartTickets() (*Tickets, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the demo's tickets: %w", err)
	}
	t := &Tickets{listener: l, ended: make(chan error, 1), list: []Ticket{
		{1, "The desk in room 4 wobbles", "open"}, {2, "New hire needs a monitor", "open"}, {3, "Coffee machine is loud", "closed"},
	}}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return t.tools() },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true})
	api := t.api()
	t.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != TicketsHost { // a page in a browser on this machine
			http.Error(w, "This server is for the tools of parley serve --dev.", http.StatusForbidden)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})}
	go func() { t.ended <- t.server.Serve(l) }()
	return t, nil
}

// Pin is the rule of egress that lets tools reach exactly this server.
func (t *Tickets) Pin() string { return "http://" + TicketsHost + ":80=" + t.listener.Addr().String() }

// Close ends the server.
func (t *Tickets) Close() error {
	if t == nil {
		return nil
	}
	err := t.server.Close()
	if ended := <-t.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = cmp.Or(err, ended)
	}
	return err
}

type (
	listInput struct {
		State string `json:"state,omitempty" jsonschema:"open or closed; left out, all tickets"`
	}
	listOutput struct {
		Tickets []Ticket `json:"tickets"`
	}
	createInput struct {
		Title string `json:"title"`
	}
	closeInput struct {
		ID int `json:"id"`
	}
)

// tools returns an MCP server with the tools.
func (t *Tickets) tools() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "list", Description: "List the tickets of Alder & Finch.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in listInput) (*mcp.CallToolResult, listOutput, error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			out := listOutput{[]Ticket{}}
			for _, x := range t.list {
				if in.State == "" || x.State == in.State {
					out.Tickets = append(out.Tickets, x)
				}
			}
			return nil, out, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "create", Description: "Create a ticket."}, func(_ context.Context, _ *mcp.CallToolRequest,
		in createInput) (*mcp.CallToolResult, Ticket, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if in.Title == "" || len(in.Title) > 200 || len(t.list) == maxTickets {
			return nil, Ticket{}, errors.New("a ticket has a title of at most 200 bytes, and there are at most 1000 tickets")
		}
		x := Ticket{len(t.list) + 1, in.Title, "open"}
		t.list = append(t.list, x)
		return nil, x, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "close", Description: "Close a ticket.", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in closeInput) (*mcp.CallToolResult, Ticket, error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			i := slices.IndexFunc(t.list, func(x Ticket) bool { return x.ID == in.ID })
			if i < 0 {
				return nil, Ticket{}, fmt.Errorf("there is no ticket %d", in.ID)
			}
			t.list[i].State = "closed"
			return nil, t.list[i], nil
		})
	return s
}
