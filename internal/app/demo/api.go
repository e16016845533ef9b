package demo

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// APIURL is the address of the HTTP API of the ticket system for tools.
const APIURL = "http://" + TicketsHost + "/api"

// api serves the tickets as an HTTP API. An order is accepted, and its result is posted by the user who
// tries it.
func (t *Tickets) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/tickets", func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		defer t.mu.Unlock()
		list := []Ticket{}
		for _, x := range t.list {
			if state := r.FormValue("state"); state == "" || x.State == state {
				list = append(list, x)
			}
		}
		respond(w, http.StatusOK, list)
	})
	mux.HandleFunc("PATCH /api/tickets/{id}", func(w http.ResponseWriter, r *http.Request) {
		var change struct{ Title string }
		if json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&change) != nil || change.Title == "" || len(change.Title) > 200 {
			respond(w, http.StatusBadRequest, map[string]string{"error": "A ticket has a title of at most 200 bytes."})
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		i := slices.IndexFunc(t.list, func(x Ticket) bool { return strconv.Itoa(x.ID) == r.PathValue("id") })
		if i < 0 {
			respond(w, http.StatusNotFound, map[string]string{"error": "There is no ticket " + strings.TrimSpace(r.PathValue("id")) + "."})
			return
		}
		t.list[i].Title = change.Title
		respond(w, http.StatusOK, t.list[i])
	})
	mux.HandleFunc("POST /api/orders", func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if url := r.Header.Get("Parley-Reply-Url"); !slices.Contains(t.orders, url) && len(t.orders) < maxTickets {
			t.orders = append(t.orders, url)
		}
		respond(w, http.StatusAccepted, map[string]string{"state": "accepted"})
	})
	return mux
}

// Orders returns the addresses for the results of the accepted orders, oldest first.
func (t *Tickets) Orders() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.orders)
}

func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
