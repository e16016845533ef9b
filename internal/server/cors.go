package server

import (
	"net/http"
	"slices"
)

// The headers that pages of CORSOrigins may send and read.
const (
	corsRequest = "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id"
	corsAnswer  = "ETag, Idempotent-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Accepted-Scopes, " +
		"X-Key-Scopes, " +
		"X-Parley-Ignored, X-Request-Id"
)

// corsAge is how many seconds a browser may remember the answer to a preflight.
const corsAge = "600"

// shareWithOrigin lets the pages of CORSOrigins read the response, and reports whether the request
// is a preflight, which the headers already answer. A page never uses the session of a signed-in
// user: Access-Control-Allow-Credentials is absent.
func (s *Server) shareWithOrigin(h http.Header, r *http.Request, methods string) (preflight bool) {
	if len(s.CORSOrigins) == 0 {
		return false
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !s.isShared(origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", corsAnswer)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", corsRequest)
	h.Set("Access-Control-Max-Age", corsAge)
	h.Set("Allow", methods)
	return true
}

// isShared reports whether an origin is one of CORSOrigins.
func (s *Server) isShared(origin string) bool {
	return slices.Contains(s.CORSOrigins, origin)
}
