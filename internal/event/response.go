package event

// ModelResponse records that the provider has begun the response that the next reply will be, and
// that it can be read again from its beginning. Before it, readers had seen Partial bytes of the
// reply's text, which were in the request, and Reasoning bytes of its reasoning.
type ModelResponse struct {
	Model        string `json:"model"` // full name
	ResponseID   string `json:"response_id"`
	PromptSHA256 string `json:"prompt_sha256"` // of the request
	Partial      int    `json:"partial,omitempty"`
	Reasoning    int    `json:"reasoning,omitempty"`
}
