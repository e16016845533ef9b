package provider

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
)

// errorFromResponse maps a response that is not a stream to an error.
func (s Service) errorFromResponse(res *http.Response) *model.Error {
	data, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // truncation only makes the message plainer
	e := s.classifyFailure(res.StatusCode, parseReport(data))
	e.RetryAfter = RetryAfter(res.Header, time.Now())
	if e.RequestID = RequestID(res.Header); e.RequestID != "" {
		e.Err = fmt.Errorf("%w, request %s", e.Err, e.RequestID)
	}
	return e
}

// Reported maps an error that a provider reported inside a stream.
func (s Service) Reported(data []byte) *model.Error {
	r := parseReport(data)
	return s.classifyFailure(r.status, r)
}

// classifyFailure classifies the failure by the status and the provider's own words, the most
// specific first. Status 0 is an error without one.
func (s Service) classifyFailure(status int, r report) *model.Error {
	e := &model.Error{Code: event.ModelError, Model: s.FullName(), Status: status, Err: fmt.Errorf("%s: HTTP %d %s", s.FullName(), status,
		r.failureLabel())}
	switch {
	case r.hasCode("content_filter", "content_policy_violation", "invalid_prompt", "responsible_ai_policy_violation") ||
		r.mentionsPhrase("content filtering policy"):
		e.Code = event.ContentRefused
		e.Message = "The agent's model refused the content under its provider's usage policy."
	case status == http.StatusPaymentRequired || r.hasCode("insufficient_quota", "billing_error", "billing_hard_limit_reached") ||
		r.mentionsPhrase("credit balance is too low"):
		needsAdmin(e, "The account at %s has no quota or credit left. Check its plan and billing.", s.Name)
	case status == http.StatusRequestEntityTooLarge || r.hasCode("context_length_exceeded", "request_too_large") ||
		r.mentionsPhrase("prompt is too long") || r.mentionsPhrase("maximum context length"):
		e.TooLong = true
		e.Message = "The conversation is longer than the agent's model can read. Send a shorter message, or start a new session."
		e.Hint = fmt.Sprintf("The conversation is longer than %s can read. Configure a model with a larger context.", s.FullName())
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == 529 ||
		r.hasCode("overloaded_error", "rate_limit_error", "rate_limit_exceeded", "overloaded", "server_overloaded", "engine_overloaded",
			"slow_down"):
		e.Code, e.Retryable = event.ModelOverloaded, true
		e.Message = "The model is overloaded. Send the message again in a minute."
		e.Hint = s.Name + " is overloaded or limits the rate of requests."
	case status == http.StatusUnauthorized || r.hasCode("authentication_error", "invalid_api_key"):
		needsAdmin(e, "%s did not accept the API key. Check %s.", s.Name, s.Key)
	case status == http.StatusForbidden || r.hasCode("permission_error"):
		needsAdmin(e, "%s does not let this API key use the model %s. Check the rights of the key in %s, and the region.", s.Name, s.Model, s.Key)
	case status == http.StatusNotFound || r.hasCode("not_found_error", "model_not_found"):
		needsAdmin(e, "%s does not know the model %s at this address. Check the model's name and the base URL (%s).", s.Name, s.Model, s.URL)
	case status >= 300 && status < 400:
		needsAdmin(e, "%s redirects to another address. Check the base URL (%s).", s.Name, s.URL)
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == 0 && !r.hasCode("invalid_request_error") ||
		status >= 500:
		e.Retryable = true
		e.Message = "The agent's model failed to answer. Send the message again."
		e.Hint = s.Name + " failed to answer."
	default:
		e.Err = fmt.Errorf("%w: %w", errNotAccepted, e.Err)
		needsAdmin(e, "%s did not accept the request. Check that the model %s takes tools and streams its replies.", s.Name, s.Model)
	}
	return e
}

// needsAdmin makes e a failure that only an administrator can end.
func needsAdmin(e *model.Error, hint string, args ...any) {
	e.Admin, e.Message, e.Hint = true, model.Unavailable, fmt.Sprintf(hint, args...)
}

// hasCode reports whether the provider's type or code is one of words.
func (r report) hasCode(words ...string) bool {
	return slices.Contains(words, r.kind) || slices.Contains(words, r.code)
}

// mentionsPhrase reports whether the provider's message contains a phrase, for the few conditions
// without a type or code.
func (r report) mentionsPhrase(phrase string) bool {
	return strings.Contains(strings.ToLower(r.message), phrase)
}
