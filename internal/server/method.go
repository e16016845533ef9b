package server

import (
	"net/http"

	"github.com/parley-server/parley/internal/fault"
)

// OtherMethod answers a request with a method that its path does not have. allow are those that
// it has.
func OtherMethod(w http.ResponseWriter, r *http.Request, allow string) error {
	w.Header().Set("Allow", allow)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return fault.New(fault.MethodNotAllowed, "This path allows %s.", allow)
}
